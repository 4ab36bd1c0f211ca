"""I/O phases: their values, and how they are extracted from the records of a log."""
