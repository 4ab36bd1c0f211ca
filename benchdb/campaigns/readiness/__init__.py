"""Checks before the first run of a campaign."""
