"""Checks: each looks at the facts of a run for one way in which its I/O helps or harms."""
