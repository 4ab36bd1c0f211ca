"""A queue replayed: the gain that a pool of I/O nodes would have."""
