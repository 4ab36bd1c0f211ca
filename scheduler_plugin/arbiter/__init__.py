"""The arbiter: it divides free I/O nodes among waiting jobs."""
