"""Benchmark campaigns: what to measure, on which platform, by which program, how far it is."""
