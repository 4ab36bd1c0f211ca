"""The database that a command reads, with a warning if it does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from sqlalchemy import Connection

from benchdb.store.database import missing_file, reading

ANOTHER = "name another database with --db or IONCAST_DB"


@contextmanager
def reading_database(location: str | None) -> Iterator[Connection]:
    """Open the database of a command to read it; a missing file reads as an empty database.

    Parameters
    ----------
    location : str or None
        The database: an SQLite file or a SQLAlchemy URL; None is `default_location`.
    """
    missing = missing_file(location)
    if missing is not None:
        click.echo(
            f"ioncast: warning: {missing}: the database does not exist yet;"
            f" `ioncast bench import` creates it, or {ANOTHER}",
            err=True,
        )
    with reading(location) as connection:
        yield connection
