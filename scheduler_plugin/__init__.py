"""What runs beside Slurm: the right number of I/O nodes at submission, and across jobs."""
