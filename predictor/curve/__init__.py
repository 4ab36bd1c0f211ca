"""Compose the curve of an application from its phases, decide on I/O nodes, and explain it."""
