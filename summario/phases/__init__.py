"""I/O phases, and their extraction from the records of a log."""
