"""Compare predictions and decisions with measured bandwidths."""
