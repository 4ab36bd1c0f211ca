"""Division of a pool of I/O nodes among several jobs."""
