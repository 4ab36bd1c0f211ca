"""When other programs last sent something: the scheduler, and whoever sends logs and outcomes."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from ioncast.service.store.tables import decisions, outcomes, runs


class LastSigns(NamedTuple):
    """Times of the newest question, log and outcome, ISO 8601 in UTC; None if none came."""

    question: str | None
    log: str | None
    outcome: str | None


def last_signs(connection: Connection) -> LastSigns:
    """Read when the newest question, log and outcome came, from indexes."""
    columns = decisions.c.asked_at, runs.c.stored_at, outcomes.c.reported_at
    return LastSigns(*(connection.scalar(select(func.max(column))) for column in columns))
