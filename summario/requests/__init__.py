"""Fsyncs, orders, aggregators, and phases of traced requests."""
