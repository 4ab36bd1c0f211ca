"""Emulates an I/O-forwarding platform on one machine: real daemons in network namespaces."""
