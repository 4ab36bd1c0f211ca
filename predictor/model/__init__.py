"""The model of a system: what is learned from its measurements."""
