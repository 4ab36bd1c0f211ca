"""Fidelities in the database: how far the benchmark of a configuration agreed with a phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from sqlalchemy import Connection, bindparam, delete, insert, select

from benchdb.store.schema import fidelities, longest, systems
from benchdb.store.systems import require_system, system_id_of


@dataclass(frozen=True)
class NewFidelity:
    """The comparison of a phase, or a part of it, with the run of its benchmark.

    `pattern` is that of the benchmark's configuration. The fidelity is from 0 to 1, the same I/O.
    `aspects` are the compared properties as JSON, which only the predictor reads.
    """

    pattern: str
    fidelity: float
    log: str
    phase: int
    aspects: str


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_OF_SYSTEM = (
    select(fidelities.c.pattern, fidelities.c.fidelity)
    .join(systems)
    .where(systems.c.name == bindparam("system"))
)
_FORGET = delete(fidelities).where(
    fidelities.c.system_id == bindparam("of_system"),
    fidelities.c.pattern == bindparam("of_pattern"),
)
_STORE = insert(fidelities)


def store_fidelities(connection: Connection, system: str, found: Iterable[NewFidelity]) -> None:
    """Store fidelities; each replaces the one that its configuration had on the system.

    If several phases have the same configuration, the lowest fidelity is stored.
    """
    system_id = system_id_of(connection, require_system(connection, system))
    lowest: dict[str, NewFidelity] = {}
    for each in found:
        known = lowest.get(each.pattern)
        if known is None or each.fidelity < known.fidelity:
            lowest[each.pattern] = each
    verified_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    for pattern, each in lowest.items():
        connection.execute(_FORGET, {"of_system": system_id, "of_pattern": pattern})
        values = asdict(each) | {"system_id": system_id, "verified_at": verified_at}
        values["log"] = each.log[-longest(fidelities.c.log) :]
        connection.execute(_STORE, values)


def fidelities_of(connection: Connection, system: str) -> dict[str, float]:
    """Look up the fidelities of a system by the patterns of their configurations."""
    rows = connection.execute(_OF_SYSTEM, {"system": system})
    return {row.pattern: row.fidelity for row in rows}
