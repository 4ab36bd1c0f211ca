"""Systems whose schedulers get no decisions at the moment, and who paused them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, select, update

from benchdb.store.accepted_values import check_text
from benchdb.store.schema import systems
from benchdb.store.systems import require_system
from ioncast_base.errors import InputError
from ioncast_base.times import now

_PAUSES = (
    select(systems.c.name, systems.c.paused_by, systems.c.paused_at, systems.c.pause_reason)
    .where(systems.c.paused_at.is_not(None))
    .order_by(systems.c.name)
)
_RESUMED = {"paused_by": None, "paused_at": None, "pause_reason": None}


@dataclass(frozen=True)
class PausedSystem:
    """A system without decisions: who paused it, and when (ISO 8601 in UTC)."""

    system: str
    paused_by: str
    paused_at: str
    reason: str | None


def pauses(connection: Connection) -> list[PausedSystem]:
    """All paused systems, in the order of their names."""
    return [PausedSystem(*row) for row in connection.execute(_PAUSES)]


def pause_decisions(
    connection: Connection, system: str, paused_by: str, reason: str | None = None
) -> PausedSystem | None:
    """Stop the decisions for a system until `resume_decisions`."""
    require_system(connection, system)
    _check("the name of the person", paused_by, systems.c.paused_by)
    _check("the reason", reason, systems.c.pause_reason)
    row = connection.execute(_PAUSES.where(systems.c.name == system)).one_or_none()
    if row is not None:
        return PausedSystem(*row)
    values = {"paused_by": paused_by, "paused_at": now(), "pause_reason": reason}
    connection.execute(update(systems).where(systems.c.name == system).values(values))
    return None


def resume_decisions(connection: Connection, system: str) -> bool:
    """Let a system get decisions again."""
    of = systems.c.name == require_system(connection, system), systems.c.paused_at.is_not(None)
    return bool(connection.execute(update(systems).where(*of).values(_RESUMED)).rowcount)


def _check(name: str, text: str | None, column: Column[Any]) -> None:
    check_text(name, text, column)
    if text is not None and (not text.strip() or not text.isprintable()):
        raise InputError(f"{name} is {text!r}", remedy="use printable characters in one line")
