"""Systems whose schedulers get no decisions at the moment, and who paused them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, delete, insert, select

from benchdb.store.accepted_values import check_text
from benchdb.store.schema import paused_systems
from benchdb.store.systems import require_system
from ioncast_base.errors import InputError
from ioncast_base.times import now

_TABLE = paused_systems.c
_PAUSES = select(_TABLE.system, _TABLE.paused_by, _TABLE.paused_at, _TABLE.reason)


@dataclass(frozen=True)
class Pause:
    """A system without decisions.

    Attributes
    ----------
    system : str
        Name of the system.
    paused_by : str
        Name of the person who paused it.
    paused_at : str
        When it was paused, ISO 8601 in UTC.
    reason : str or None
        The reason, if one was given.
    """

    system: str
    paused_by: str
    paused_at: str
    reason: str | None


def pauses(connection: Connection) -> list[Pause]:
    """All paused systems, in the order of their names."""
    return sorted(
        (Pause(*row) for row in connection.execute(_PAUSES)), key=lambda pause: pause.system
    )


def pause_of(connection: Connection, system: str) -> Pause | None:
    """The pause of a system; None if its decisions are not paused."""
    row = connection.execute(_PAUSES.where(_TABLE.system == system)).one_or_none()
    return Pause(*row) if row else None


def pause_decisions(
    connection: Connection, system: str, paused_by: str, reason: str | None = None
) -> Pause | None:
    """Stop the decisions for a system until `resume_decisions`.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes (see `benchdb.store.database.transaction`).
    system : str
        Name of a system of the database.
    paused_by : str
        Name of the person who pauses it: printable words.
    reason : str, optional
        The reason, one printable line.

    Returns
    -------
    Pause or None
        The pause that the system had before; it stays.

    Raises
    ------
    InputError
        If a text is not valid.
    UnknownNameError
        If the database does not have the system.
    """
    require_system(connection, system)
    _check("the name of the person", paused_by, _TABLE.paused_by)
    _check("the reason", reason, _TABLE.reason)
    before = pause_of(connection, system)
    if before is not None:
        return before
    values = {"system": system, "paused_by": paused_by, "paused_at": now(), "reason": reason}
    connection.execute(insert(paused_systems).values(values))
    return None


def resume_decisions(connection: Connection, system: str) -> bool:
    """Let a system get decisions again.

    Returns
    -------
    bool
        False if they were not paused.

    Raises
    ------
    UnknownNameError
        If the database does not have the system, and it is not paused.
    """
    done = connection.execute(delete(paused_systems).where(_TABLE.system == system))
    if not done.rowcount:
        require_system(connection, system)
    return bool(done.rowcount)


def _check(name: str, text: str | None, column: Column[Any]) -> None:
    check_text(name, text, column)
    if text is not None and (not text.strip() or not text.isprintable()):
        raise InputError(f"{name} is {text!r}", remedy="use printable characters in one line")
