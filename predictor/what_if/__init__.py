"""Advice for a run: its I/O changed as advice says, predicted beside today's."""
