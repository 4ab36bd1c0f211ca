"""Numbers that are kept up to date with each change, because counting rows would take too long."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select, update

from ioncast.service.store.tables import counters

# Counting all rows of a large table takes many seconds.
_MOST_COUNTED = 100_000
_VALUE = select(counters.c.value).where(counters.c.name == bindparam("of"))
_ADD = (
    update(counters)
    .where(counters.c.name == bindparam("of"))
    .values(value=counters.c.value + bindparam("more"))
)


def counter(connection: Connection, name: str) -> int:
    """Read a counter; 0 if the database has none of this name."""
    return int(connection.scalar(_VALUE, {"of": name}) or 0)


def add_to_counter(connection: Connection, name: str, more: int) -> None:
    """Add a number to a counter; the number may be negative."""
    connection.execute(_ADD, {"of": name, "more": more})


def count(connection: Connection, rows: Select[Any], **values: object) -> int:
    """Count the rows of a query, up to 100,000; the query has the limit `most`."""
    number = select(func.count()).select_from(rows.subquery())
    return int(connection.scalar(number, {**values, "most": _MOST_COUNTED}) or 0)
