"""Deletes everything that belongs to a run or to a user."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection, or_, select

from benchdb.store.accepted_values import is_text
from ioncast.service.store.applications import checked_id
from ioncast.service.store.deleting_runs import delete_decisions, delete_outcomes, delete_runs
from ioncast.service.store.outcomes import ids_of_users_outcomes
from ioncast.service.store.tables import applications, decisions, outcomes, runs
from ioncast_base.errors import UnknownNameError

# Deleting more in one transaction would keep other writers waiting. A run has up to 1 MiB of
# insights.
_ROWS_AT_ONCE, _RUNS_AT_ONCE = 500, 50


@dataclass(frozen=True)
class Belongings:
    """The ids of everything that belongs to a run or to a user."""

    outcomes: tuple[int, ...] = ()
    decisions: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.decisions or self.runs)


def belongings_of_run(connection: Connection, run_id: int) -> Belongings:
    """List a run and the outcomes that its log was sent with."""
    key = checked_id(run_id, "run")
    if connection.scalar(select(runs.c.id).where(runs.c.id == key)) is None:
        raise UnknownNameError(f"the database has no run {run_id}")
    theirs = select(outcomes.c.id).where(outcomes.c.run_id == key).order_by(outcomes.c.id)
    return Belongings(outcomes=tuple(connection.scalars(theirs)), runs=(key,))


def belongings_of_user(connection: Connection, user: str) -> Belongings:
    """List the runs of a user's applications, the decisions for the user, and their outcomes."""
    belongings = Belongings()
    if is_text(user):
        own = select(applications.c.id).where(applications.c.user == user)
        asked = or_(decisions.c.user == user, decisions.c.application_id.in_(own))
        query = select(runs.c.id).where(runs.c.application_id.in_(own))
        belongings = Belongings(
            outcomes=tuple(ids_of_users_outcomes(connection, user)),
            decisions=tuple(connection.scalars(select(decisions.c.id).where(asked))),
            runs=tuple(connection.scalars(query)),
        )
    if not belongings:
        raise UnknownNameError(
            f"the database has nothing of a user {user!r}",
            remedy="`ioncast history delete` needs the name as the pages show it; logs that were"
            " sent without a name belong to uid:N",
        )
    return belongings


def delete_some(connection: Connection, found: Belongings) -> Belongings:
    """Delete some of the rows, outcomes first and runs last; return the others.

    Rows that are gone already are fine.
    """
    # Decisions and runs tell whose outcomes these are, and runs tell it of decisions. So another
    # deletion finds the rest if this one is interrupted.
    if found.outcomes:
        delete_outcomes(connection, found.outcomes[:_ROWS_AT_ONCE])
        return replace(found, outcomes=found.outcomes[_ROWS_AT_ONCE:])
    if found.decisions:
        delete_decisions(connection, found.decisions[:_ROWS_AT_ONCE])
        return replace(found, decisions=found.decisions[_ROWS_AT_ONCE:])
    delete_runs(connection, found.runs[:_RUNS_AT_ONCE])
    return replace(found, runs=found.runs[_RUNS_AT_ONCE:])
