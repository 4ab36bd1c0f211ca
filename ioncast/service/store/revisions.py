"""Revisions of runs and outcomes: they tell which applications changed since the last look."""

from __future__ import annotations

from sqlalchemy import Connection, Table, and_, bindparam, func, select, union, update

from benchdb.store.schema import systems
from ioncast.service.store.tables import decisions, outcomes, runs

# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_NEWEST = select(
    select(func.max(runs.c.revision)).scalar_subquery(),
    select(func.max(outcomes.c.revision)).scalar_subquery(),
)
_NEW_OUTCOMES = outcomes.c.revision > bindparam("outcome_revision")
_CHANGED = union(
    select(runs.c.application_id).where(runs.c.revision > bindparam("run_revision")),
    select(runs.c.application_id).join_from(outcomes, runs).where(_NEW_OUTCOMES),
    select(decisions.c.application_id)
    .join_from(outcomes, decisions, outcomes.c.decision_id == decisions.c.id)
    .where(_NEW_OUTCOMES),
    select(decisions.c.application_id)
    .join_from(outcomes, systems)
    .join(
        decisions,
        and_(decisions.c.system == systems.c.name, decisions.c.job_id == outcomes.c.job_id),
    )
    .where(_NEW_OUTCOMES, outcomes.c.decision_id.is_(None)),
)


def newest(connection: Connection) -> tuple[int, int]:
    """The greatest revisions of runs and of outcomes; 0 while the table is empty."""
    run, outcome = connection.execute(_NEWEST).one()
    return run or 0, outcome or 0


def applications_after(
    connection: Connection, run_revision: int, outcome_revision: int
) -> set[int]:
    """Find the applications whose runs or outcomes were added or changed after these revisions.

    The revisions are the result of `newest` in an earlier transaction. An outcome belongs to the
    application of its run and to that of its decision; it counts as changed when its decision is
    stored after it.
    """
    revisions = {"run_revision": run_revision, "outcome_revision": outcome_revision}
    return {key for key in connection.scalars(_CHANGED, revisions) if key is not None}


def next_revision(connection: Connection, table: Table) -> int:
    """A revision greater than any in the table; only one transaction writes at a time."""
    greatest = connection.scalar(select(func.max(table.c.revision)))
    return int(greatest or 0) + 1


def keep_greatest(connection: Connection, table: Table, greatest: int) -> None:
    """Let no deleting lower the greatest revision, by which services notice a restored database."""
    now = connection.scalar(select(func.max(table.c.revision)))
    if now is not None and now < greatest:
        last = update(table).where(table.c.revision == now)
        connection.execute(last.values(revision=greatest + 1))
