"""Checks on single processes, traces, aggregators and servers."""
