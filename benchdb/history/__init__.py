"""The history of applications: their runs, decisions and outcomes."""
