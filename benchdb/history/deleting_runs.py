"""Deletes runs and outcomes from the history, and tells the services which answers change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from benchdb.history.applications import RUN_TIME, note_lost_runs
from benchdb.history.revisions import keep_greatest, newest
from benchdb.store.schema import (
    applications,
    decisions,
    deleted_runs,
    insights,
    outcomes,
    run_logs,
    runs,
    systems,
)
from benchdb.store.stored_counters import add_to_counter, count, counter
from ioncast_base.times import in_utc, now

# Deleting more in one transaction would keep other writers waiting. A run has up to 1 MiB of
# insights.
_RUNS_AT_ONCE = 50
_OUTCOMES_AT_ONCE = 500
# Names of counters: the number of the last deleted run, and of the last one that was forgotten.
_DELETED = "deleted runs"
_FORGOTTEN = "forgotten deleted runs"

_LATER = runs.alias()
_LATER_TIME = func.coalesce(_LATER.c.started, _LATER.c.stored_at)
# The newest run of an application and size answers for its jobs as long as any are asked for.
_IS_NEEDED = and_(
    exists().where(decisions.c.application_id == runs.c.application_id),
    ~exists().where(
        _LATER.c.application_id == runs.c.application_id,
        _LATER.c.tasks == runs.c.tasks,
        tuple_(_LATER_TIME, _LATER.c.id) > tuple_(RUN_TIME, runs.c.id),
    ),
)
_OLD_RUNS = (
    select(runs.c.id)
    .where(runs.c.stored_at < bindparam("first_kept"), ~_IS_NEEDED)
    .order_by(runs.c.stored_at)
    .limit(bindparam("most"))
)
_OLD_OUTCOMES = (
    select(outcomes.c.id)
    .where(outcomes.c.reported_at < bindparam("first_kept"))
    .order_by(outcomes.c.reported_at)
    .limit(bindparam("most"))
)
_KNOWN_BY = (
    select(systems.c.name, applications.c.executable, applications.c.user, runs.c.name)
    .join_from(runs, applications, runs.c.application_id == applications.c.id)
    .join(systems, runs.c.system_id == systems.c.id)
    .distinct()
)


@dataclass(frozen=True)
class DeletedRun:
    """The way in which a deleted run was known; several runs share it.

    Attributes
    ----------
    number : int
        Greater than the numbers of all runs that were deleted before.
    system, executable, user : str
        Its application.
    name : str or None
        The job's name.
    """

    number: int
    system: str
    executable: str
    user: str
    name: str | None


def old_runs(connection: Connection, first_kept: datetime, most: int = _RUNS_AT_ONCE) -> list[int]:
    """The ids of some runs that were stored before a time, the oldest first, at most `most`.

    The newest run of an application and number of processes is left out as long as the database
    has decisions for the application.
    """
    values = {"first_kept": in_utc(first_kept), "most": min(most, _RUNS_AT_ONCE)}
    return list(connection.scalars(_OLD_RUNS, values))


def count_old_runs(connection: Connection, first_kept: datetime) -> int:
    """Count all runs of which `old_runs` lists some."""
    return count(connection, _OLD_RUNS, first_kept=in_utc(first_kept))


def old_outcomes(
    connection: Connection, first_kept: datetime, most: int = _OUTCOMES_AT_ONCE
) -> list[int]:
    """The ids of some outcomes that were reported before a time, the oldest first."""
    values = {"first_kept": in_utc(first_kept), "most": min(most, _OUTCOMES_AT_ONCE)}
    return list(connection.scalars(_OLD_OUTCOMES, values))


def count_old_outcomes(connection: Connection, first_kept: datetime) -> int:
    """Count all outcomes that were reported before a time."""
    return count(connection, _OLD_OUTCOMES, first_kept=in_utc(first_kept))


def delete_old_runs(connection: Connection, first_kept: datetime, most: int = _RUNS_AT_ONCE) -> int:
    """Delete the runs that `old_runs` lists, and return their number."""
    ids = old_runs(connection, first_kept, most)
    delete_runs(connection, ids)
    return len(ids)


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
