"""I/O phases of Darshan logs (the SummarIO method, Inria RR-9366, Appendix A)."""
