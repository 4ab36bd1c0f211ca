"""Insights into an application: facts of its log, their tables, comparisons and checks."""
