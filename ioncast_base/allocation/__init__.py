"""I/O nodes divided among several jobs that share a pool."""
