"""Rows of the history that expire by age."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    select,
    tuple_,
)

from ioncast.service.store.applications import RUN_TIME
from ioncast.service.store.deleting_runs import delete_decisions, delete_outcomes, delete_runs
from ioncast.service.store.stored_counters import count
from ioncast.service.store.tables import decisions, kept_results, outcomes, queue_reports, runs
from ioncast_base.times import in_utc

# Deleting more in one transaction would keep other writers waiting. A run has up to 1 MiB of
# insights, a kept result up to 4 MiB.
_SMALL_ROWS, _LARGE_ROWS = 500, 50


@dataclass(frozen=True)
class Expiring:
    """A table whose rows expire.

    `old` selects the ids of the rows from before `first_kept` that may go, the oldest first; a
    transaction may delete `at_once` of them.
    """

    table: Table
    old: Select[Any]
    delete: Callable[[Connection, Sequence[Any]], object]
    at_once: int

    def count(self, connection: Connection, first_kept: datetime) -> tuple[int, int]:
        """Count the rows from before a time, and, if there are any, all rows."""
        old = count(connection, self.old, first_kept=in_utc(first_kept))
        rows = select(self.table.c.id).limit(bindparam("most"))
        return old, count(connection, rows) if old else 0

    def delete_old(self, connection: Connection, first_kept: datetime, most: int) -> int:
        """Delete some of the rows from before a time, and return their number."""
        values = {"first_kept": in_utc(first_kept), "most": min(most, self.at_once)}
        ids = list(connection.scalars(self.old, values))
        self.delete(connection, ids)
        return len(ids)


def _old(table: Table, time: Column[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
    older = time < bindparam("first_kept")
    return select(table.c.id).where(older, *conditions).order_by(time).limit(bindparam("most"))


def _deleting(table: Table) -> Callable[[Connection, Sequence[Any]], object]:
    """Make a function that deletes rows to which no others belong."""
    return lambda connection, ids: connection.execute(delete(table).where(table.c.id.in_(ids)))


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
RUNS = Expiring(runs, _old(runs, runs.c.stored_at, ~_IS_NEEDED), delete_runs, _LARGE_ROWS)
OUTCOMES = Expiring(outcomes, _old(outcomes, outcomes.c.reported_at), delete_outcomes, _SMALL_ROWS)
DECISIONS = Expiring(
    decisions, _old(decisions, decisions.c.asked_at), delete_decisions, _SMALL_ROWS
)
QUEUE_REPORTS = Expiring(
    queue_reports,
    _old(queue_reports, queue_reports.c.reported_at),
    _deleting(queue_reports),
    _SMALL_ROWS,
)
# These rows have the time when they expire.
KEPT_RESULTS = Expiring(
    kept_results,
    _old(kept_results, kept_results.c.expires_at),
    _deleting(kept_results),
    _LARGE_ROWS,
)
