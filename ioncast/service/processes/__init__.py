"""Processes of the service: signals while they start, and processes that a signal stopped."""
