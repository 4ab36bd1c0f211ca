"""Decisions in the database: the questions of schedulers and the answers they got."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import (
    Connection,
    RowMapping,
    bindparam,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from benchdb.store.accepted_values import (
    check_bandwidth,
    check_count,
    check_share,
    check_text,
    is_text,
    stored_time,
)
from benchdb.store.systems import check_system_name
from ioncast.service.store.revisions import next_revision
from ioncast.service.store.tables import decisions as decisions_table
from ioncast.service.store.tables import outcomes
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.limits import LARGEST_ID
from ioncast_base.times import in_utc

# Number of keys in one query; databases limit the number of parameters.
_KEYS = 200
_TEXTS = ("id", "user", "executable", "name", "job_id", "source")
# Length of the date and hour at the start of a stored time.
HOUR = len("2026-11-21T04")


@dataclass(frozen=True)
class DecisionRow:
    """A question of a scheduler and its answer.

    The id has at most 32 characters. The source is "history", "model" or "default". `available` is
    the number of I/O nodes that the job could get, and `confidence` a number from 0 to 1.
    """

    id: str
    asked_at: str
    system: str
    user: str | None
    executable: str | None
    name: str | None
    job_id: str | None
    nodes: int | None
    tasks: int | None
    available: int | None
    io_nodes: int | None
    source: str
    expected_mib_s: float | None
    confidence: float | None
    application_id: int | None
    why: str
    curve: Annotated[
        tuple[tuple[int, float, float, float], ...],
        Field(
            description="For each number of I/O nodes, the bandwidth in MiB/s: expected, p10 and"
            " p90."
        ),
    ]
    explored: Annotated[
        bool,
        Field(
            description="Whether the number was tried, to learn whether it is better than the best"
            " known one."
        ),
    ] = False

    def __post_init__(self) -> None:
        if not self.id or not self.source:
            raise InputError("a decision needs an id and a source")
        check_system_name(self.system)
        stored_time("asked_at", self.asked_at)
        for name in _TEXTS:
            check_text(name, getattr(self, name), decisions_table.c[name])
        if not is_text(self.why):
            raise InputError("why contains a NUL or half a character")
        for name in ("nodes", "tasks", "available", "io_nodes", "application_id"):
            check_count(name, getattr(self, name))
        check_bandwidth(self.expected_mib_s)
        check_share("confidence", self.confidence)
        for io_nodes, *bandwidths in self.curve:
            check_count("I/O nodes", io_nodes)
            for bandwidth in bandwidths:
                check_bandwidth(bandwidth)


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_DECISION = select(decisions_table).where(decisions_table.c.id == bindparam("key"))
_KNOWN = select(decisions_table.c.id).where(
    decisions_table.c.id.in_(bindparam("keys", expanding=True))
)


def store_decisions(connection: Connection, rows: Iterable[DecisionRow]) -> int:
    """Store decisions and count the new ones; a decision that is already stored stays as it is.

    Thousands at once are fine. Outcomes that were stored before their decision count as changed.
    """
    new = {row.id: row for row in reversed(list(rows))}
    for key in _known(connection, list(new)):
        del new[key]
    if not new:
        return 0
    connection.execute(insert(decisions_table), [_values(row) for row in new.values()])
    _revise_outcomes(connection, list(new.values()))
    return len(new)


def decision(connection: Connection, decision_id: str) -> DecisionRow:
    """Read one decision; an UnknownNameError if the id is unknown."""
    row = None
    if is_text(decision_id):
        row = connection.execute(_DECISION, {"key": decision_id}).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"the database has no decision {decision_id!r}")
    return decision_of_row(row)


def decisions(
    connection: Connection,
    *,
    system: str | None = None,
    application_id: int | None = None,
    job_id: str | None = None,
    before: tuple[str, str] | None = None,
    limit: int = 100,
) -> list[DecisionRow]:
    """List decisions, newest first; an unknown system has none.

    `before` are `asked_at` and id of a decision: only earlier ones are listed, for the next page.
    """
    table = decisions_table.c
    if not (is_text(system) and is_text(job_id) and 0 <= (application_id or 0) <= LARGEST_ID):
        return []
    query = select(decisions_table).order_by(table.asked_at.desc(), table.id.desc()).limit(limit)
    wanted = {"system": system, "application_id": application_id, "job_id": job_id}
    query = query.where(*(table[n] == value for n, value in wanted.items() if value is not None))
    if before is not None:
        moment = stored_time("before", before[0])
        check_text("before", before[1], table.id)
        query = query.where(tuple_(table.asked_at, table.id) < tuple_(moment, before[1]))
    return [decision_of_row(row) for row in connection.execute(query).mappings()]


def decisions_per_hour(
    connection: Connection, since: datetime, system: str | None = None
) -> list[tuple[str, str, int]]:
    """Count the decisions of each hour and source, from the hour of `since` on.

    The hours are their starts in ISO 8601 (UTC). An hour without decisions is not in the list.
    """
    if not is_text(system):
        return []
    table = decisions_table.c
    hour = func.substr(table.asked_at, 1, HOUR).label("hour")
    query = select(hour, table.source, func.count()).where(table.asked_at >= in_utc(since)[:HOUR])
    if system is not None:
        query = query.where(table.system == system)
    found = connection.execute(query.group_by(hour, table.source))
    return sorted((f"{moment}:00:00+00:00", source, number) for moment, source, number in found)


def decision_of_row(row: RowMapping | dict[str, Any]) -> DecisionRow:
    """The decision in a row with the columns of `decisions`."""
    curve = tuple(tuple(point) for point in json.loads(row["curve"]))
    return DecisionRow(**{**row, "curve": curve})


def _known(connection: Connection, keys: Sequence[str]) -> Iterator[str]:
    """Yield those of some ids that are stored."""
    for start in range(0, len(keys), _KEYS):
        yield from connection.scalars(_KNOWN, {"keys": keys[start : start + _KEYS]})


def _revise_outcomes(connection: Connection, decided: Sequence[DecisionRow]) -> None:
    """Mark the outcomes of these decisions as changed, because they have an application now."""
    revision = next_revision(connection, outcomes)
    for start in range(0, len(decided), _KEYS):
        some = decided[start : start + _KEYS]
        jobs = [row.job_id for row in some if row.job_id]
        theirs = or_(
            outcomes.c.decision_id.in_([row.id for row in some]), outcomes.c.job_id.in_(jobs)
        )
        connection.execute(update(outcomes).where(theirs).values(revision=revision))


def _values(row: DecisionRow) -> dict[str, Any]:
    """The values of the columns; an empty text is stored as NULL, except in `why`."""
    values = {name: None if value == "" else value for name, value in vars(row).items()}
    return values | {
        "asked_at": stored_time("asked_at", row.asked_at),
        "why": row.why,
        "curve": json.dumps(row.curve),
    }
