"""The arbiter: it divides free I/O nodes between waiting jobs."""
