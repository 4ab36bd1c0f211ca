"""The benchmark runs that a site lacks, and the next one that teaches most."""
