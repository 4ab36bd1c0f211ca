"""The case studies of Inria RR-9366, and more, on any platform."""
