"""Facts of a run, computed once from its logs: columns for each file, rank and layer."""
