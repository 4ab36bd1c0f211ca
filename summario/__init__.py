"""Darshan logs to I/O phases (the SummarIO method, Inria RR-9366, Appendix A)."""
