"""Deletes runs, outcomes and decisions, and tells the services which answers change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, exists, func, insert, select, update

from benchdb.store.schema import systems
from ioncast.service.store.applications import note_lost_runs
from ioncast.service.store.revisions import keep_greatest, newest
from ioncast.service.store.stored_counters import add_to_counter, counter
from ioncast.service.store.tables import (
    applications,
    decisions,
    deleted_runs,
    insights,
    outcomes,
    run_logs,
    runs,
)
from ioncast_base.times import in_utc, now

# Names of counters: the number of the last deleted run, and of the last one that was forgotten.
_DELETED = "deleted runs"
_FORGOTTEN = "forgotten deleted runs"

_KNOWN_BY = (
    select(systems.c.name, applications.c.executable, applications.c.user, runs.c.name)
    .join_from(runs, applications, runs.c.application_id == applications.c.id)
    .join(systems, runs.c.system_id == systems.c.id)
    .distinct()
)


@dataclass(frozen=True)
class DeletedRun:
    """The way in which deleted runs were known; `number` grows with each deleted run."""

    number: int
    system: str
    executable: str
    user: str
    name: str | None


def delete_runs(connection: Connection, ids: Collection[int]) -> None:
    """Delete runs with their logs' digests and insights; their outcomes stay without a log.

    An application without runs is deleted too.
    """
    if not ids:
        return
    greatest, _ = newest(connection)
    _note_deleted(connection, ids)
    of = select(runs.c.application_id).where(runs.c.id.in_(ids))
    lost = Counter(connection.scalars(of))
    for table in (run_logs, insights):
        connection.execute(delete(table).where(table.c.run_id.in_(ids)))
    connection.execute(update(outcomes).where(outcomes.c.run_id.in_(ids)).values(run_id=None))
    connection.execute(delete(runs).where(runs.c.id.in_(ids)))
    for application_id, number in lost.items():
        note_lost_runs(connection, application_id, number)
    keep_greatest(connection, runs, greatest)


def delete_outcomes(connection: Connection, ids: Collection[int]) -> None:
    """Delete outcomes by their ids; some hundred at once."""
    if not ids:
        return
    _, greatest = newest(connection)
    connection.execute(delete(outcomes).where(outcomes.c.id.in_(ids)))
    keep_greatest(connection, outcomes, greatest)


def delete_decisions(connection: Connection, ids: Collection[str]) -> None:
    """Delete decisions by their ids; some hundred at once."""
    connection.execute(delete(decisions).where(decisions.c.id.in_(ids)))


def deleted_after(connection: Connection, number: int) -> list[DeletedRun]:
    """List the runs that were deleted after one with this number, in the order of numbers."""
    table = deleted_runs.c
    query = (
        select(table.number, table.system, table.executable, table.user, table.name)
        .where(table.number > number)
        .order_by(table.number)
    )
    return [DeletedRun(*row) for row in connection.execute(query)]


def last_deleted(connection: Connection) -> int:
    """The number of the run that was deleted last; 0 without one."""
    return counter(connection, _DELETED)


def last_forgotten(connection: Connection) -> int:
    """The greatest number of a deleted run that `deleted_after` no longer lists; 0 without one."""
    return counter(connection, _FORGOTTEN)


def is_forgettable(connection: Connection, first_kept: datetime) -> bool:
    """Whether `forget_deleted` would forget any run."""
    query = select(exists().where(deleted_runs.c.deleted_at < in_utc(first_kept)))
    return bool(connection.scalar(query))


def forget_deleted(connection: Connection, first_kept: datetime) -> None:
    """Forget the runs that were deleted before a time.

    A service that has not seen them by then prepares all answers again.
    """
    old = deleted_runs.c.deleted_at < in_utc(first_kept)
    last = connection.scalar(select(func.max(deleted_runs.c.number)).where(old))
    connection.execute(delete(deleted_runs).where(old))
    add_to_counter(connection, _FORGOTTEN, max((last or 0) - last_forgotten(connection), 0))


def _note_deleted(connection: Connection, ids: Collection[int]) -> None:
    known = connection.execute(_KNOWN_BY.where(runs.c.id.in_(ids))).all()
    first = counter(connection, _DELETED) + 1
    add_to_counter(connection, _DELETED, len(known))
    moment = now()
    values = [
        {"number": number, "deleted_at": moment}
        | dict(zip(("system", "executable", "user", "name"), row, strict=True))
        for number, row in enumerate(known, first)
    ]
    if values:
        connection.execute(insert(deleted_runs), values)
