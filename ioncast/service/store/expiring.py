"""Rows of the history that expire by age."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from ioncast.service.store.deleting_runs import delete_outcomes, delete_runs
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


def _expiring(
    table: Table, time: Column[Any], at_once: int = _SMALL_ROWS, *conditions: ColumnElement[bool]
) -> Expiring:
    """Describe a table whose rows expire by a column; no others belong to them."""
    older = select(table.c.id).where(time < bindparam("first_kept"), *conditions)
    return Expiring(
        table,
        older.order_by(time).limit(bindparam("most")),
        lambda connection, ids: connection.execute(delete(table).where(table.c.id.in_(ids))),
        at_once,
    )


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
RUNS = replace(_expiring(runs, runs.c.stored_at, _LARGE_ROWS, ~_IS_NEEDED), delete=delete_runs)
OUTCOMES = replace(_expiring(outcomes, outcomes.c.reported_at), delete=delete_outcomes)
DECISIONS = _expiring(decisions, decisions.c.asked_at)
QUEUE_REPORTS = _expiring(queue_reports, queue_reports.c.reported_at)
# These rows have the time when they expire.
KEPT_RESULTS = _expiring(kept_results, kept_results.c.expires_at, _LARGE_ROWS)
