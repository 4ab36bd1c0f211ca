"""Learn from the measured bandwidths of an application's own runs."""
