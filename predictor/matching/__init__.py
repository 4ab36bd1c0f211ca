"""Match phases with benchmarks, and runs with the application that they belong to."""
