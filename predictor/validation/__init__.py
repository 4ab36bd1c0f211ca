"""Predictions and decisions held against what jobs then got."""
