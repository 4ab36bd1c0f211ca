"""`ioncast slurm check`: a gatherer for each source, and pure functions that judge."""
