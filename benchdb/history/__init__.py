"""The history of applications: their runs, decisions and outcomes, in the database."""
