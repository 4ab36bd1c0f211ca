"""Plan campaigns: the benchmarks that a site lacks."""
