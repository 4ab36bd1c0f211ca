"""Finds out why a run was slow: the runs that it resembles, and the servers of its files."""
