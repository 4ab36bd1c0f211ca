"""A queue of jobs replayed with a pool of I/O nodes: policies side by side."""
