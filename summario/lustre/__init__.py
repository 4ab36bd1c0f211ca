"""Layouts of files on Lustre: the servers of a file, and of each range of its bytes."""
