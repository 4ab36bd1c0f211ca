"""The database: opening it, tables, migrations, systems, tokens and fitted models."""
