"""Findings of checks in words: a table, CSV, SARIF and a page, all made from `to_record`."""
