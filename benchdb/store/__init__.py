"""The database itself: opening, tables, migrations, tokens, fitted models."""
