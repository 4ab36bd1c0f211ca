"""Runs the service: the command, the application, gunicorn, counts and the demonstration."""
