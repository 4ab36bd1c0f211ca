"""The benchmark database: systems, configurations and their measurements."""
