"""Simulator of queues: replays jobs with a pool of I/O nodes, with one policy after the other."""
