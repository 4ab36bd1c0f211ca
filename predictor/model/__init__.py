"""The model of a system, which is fitted to its measurements."""
