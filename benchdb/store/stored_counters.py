"""Numbers that are kept up to date with each change, because counting rows would take too long."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from benchdb.store.schema import counters

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
