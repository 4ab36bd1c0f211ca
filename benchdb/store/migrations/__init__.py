"""Migrations: steps from each version of the database to the next, for Alembic."""
