"""Errors of decisions, drift, and the jobs behind them."""
