"""Verification: runs proposed benchmarks under Darshan, and compares their logs with the phases."""
