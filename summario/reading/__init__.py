"""Safe reading of Darshan logs, also of damaged ones."""
