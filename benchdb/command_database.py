"""The database that a command reads, and the line for a database that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from benchdb.store.database import ANOTHER, missing_file, reading
from ioncast_base.command_options import warn


@contextmanager
def reading_database(location: str | None) -> Iterator[Connection]:
    """Open the database of a command to read it; say if it is a new user's, which is empty."""
    missing = missing_file(location)
    if missing is not None and location is None:
        warn(
            f"{missing}: the database does not exist yet;"
            f" `ioncast bench import` creates it, or {ANOTHER}"
        )
    with reading(location) as connection:
        yield connection
