"""Planning campaigns: which benchmarks a site lacks."""
