"""Phases to the benchmarks that do the same, and runs to the application they are of."""
