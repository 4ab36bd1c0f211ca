"""Answers to the scheduler, from memory and files, by processes that do nothing else."""
