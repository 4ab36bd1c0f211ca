"""Folders that the service writes to: its state folder, and temporary ones."""
