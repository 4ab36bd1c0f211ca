"""Benchmark campaigns: platforms, engines, running, collecting results and reports."""
