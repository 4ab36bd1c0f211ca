"""`ioncast slurm setup`: the users, files and tokens that the parts beside Slurm need."""
