"""The arbiter: it shares I/O nodes among the jobs that wait."""
