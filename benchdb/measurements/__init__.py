"""Measurements: importing, listing, curves, coverage and exports."""
