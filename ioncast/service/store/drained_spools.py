"""How far files of decisions were stored in the database, so that no line is stored twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from ioncast.service.store.tables import drained_spools

_PLACES = select(drained_spools.c.file, drained_spools.c.bytes)
_MOVE = (
    update(drained_spools)
    .where(drained_spools.c.file == bindparam("of"))
    .values(bytes=bindparam("end"))
)
_FORGET = delete(drained_spools).where(drained_spools.c.file == bindparam("of"))


def drained_places(connection: Connection) -> dict[str, int]:
    """Read how many bytes of each file were stored, also of files of other services."""
    return {row.file: row.bytes for row in connection.execute(_PLACES)}


def note_drained(connection: Connection, places: Mapping[str, int], gone: Iterable[str]) -> None:
    """Note how many bytes of files are stored, in the transaction that stores their decisions."""
    for name in gone:
        connection.execute(_FORGET, {"of": name})
    for name, end in places.items():
        if not connection.execute(_MOVE, {"of": name, "end": end}).rowcount:
            connection.execute(insert(drained_spools).values(file=name, bytes=end))
