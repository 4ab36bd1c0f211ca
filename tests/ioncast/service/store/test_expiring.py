"""Rows that are older than a time are found and deleted, except for runs that are needed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import Engine, update

from benchdb.store.database import transaction
from ioncast.service.store.decisions import decisions
from ioncast.service.store.expiring import (
    DECISIONS,
    KEPT_RESULTS,
    OUTCOMES,
    QUEUE_REPORTS,
    RUNS,
    Expiring,
)
from ioncast.service.store.kept_results import keep_result
from ioncast.service.store.outcomes import joined_outcomes
from ioncast.service.store.queue_reports import QueueReport, store_queue_report
from ioncast.service.store.runs import StoredRun, runs_like
from ioncast.service.store.tables import outcomes, runs
from ioncast_base.times import in_utc
from tests.support.history import DECISION, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def expire(engine: Engine, rows: Expiring, first_kept: datetime = NOON, most: int = 9999) -> int:
    with transaction(engine, write=True) as connection:
        return rows.delete_old(connection, first_kept, most)


def counted(engine: Engine, rows: Expiring, first_kept: datetime = NOON) -> tuple[int, int]:
    with transaction(engine) as connection:
        return rows.count(connection, first_kept)


def stored_on(engine: Engine, days_ago: float, *found: StoredRun) -> None:
    """Change the time at which runs were stored."""
    with transaction(engine, write=True) as connection:
        of = runs.c.id.in_([run.id for run in found])
        connection.execute(update(runs).where(of).values(stored_at=in_utc(NOON - days_ago * DAY)))


def left(engine: Engine) -> set[int]:
    with transaction(engine) as connection:
        return {run.id for run in runs_like(connection, "here")}


def decided(engine: Engine) -> set[str]:
    with transaction(engine) as connection:
        return {found.id for found in decisions(connection, limit=10_000)}


def put(engine: Engine, number: int) -> None:
    """Store decisions, each a minute older than the one before."""
    times = {n: in_utc(NOON - timedelta(minutes=n)) for n in range(1, number + 1)}
    put_decisions(engine, *(replace(DECISION, id=f"d{n}", asked_at=at) for n, at in times.items()))


def test_decisions_before_a_time_are_deleted(database: Engine) -> None:
    put(database, 2)
    assert counted(database, DECISIONS, NOON - timedelta(minutes=1)) == (1, 2)
    assert counted(database, DECISIONS, NOON - DAY) == (0, 0)
    assert expire(database, DECISIONS, NOON - timedelta(minutes=1)) == 1
    assert decided(database) == {"d1"}


@pytest.mark.promise("service-data-deleted")
def test_many_decisions_are_deleted_in_many_transactions(database: Engine) -> None:
    put(database, 1202)
    assert expire(database, DECISIONS) == 500
    # The oldest go first, so that the newer ones are still known.
    assert decided(database) == {f"d{n}" for n in range(1, 703)}
    assert expire(database, DECISIONS, most=2) == 2
    assert [expire(database, DECISIONS) for _ in range(3)] == [500, 200, 0]


def test_old_runs_are_deleted_the_oldest_first(database: Engine) -> None:
    found = [put_run(database)[0] for _ in range(4)]
    for days, run in zip((1, 3, -1, 2), found, strict=True):
        stored_on(database, days, run)
    assert counted(database, RUNS) == (3, 4)
    assert expire(database, RUNS, most=2) == 2
    assert left(database) == {found[0].id, found[2].id}
    assert expire(database, RUNS) == 1
    assert left(database) == {found[2].id}


def test_many_runs_are_deleted_in_several_transactions(database: Engine) -> None:
    stored_on(database, 1, *(put_run(database)[0] for _ in range(60)))
    assert [expire(database, RUNS) for _ in range(3)] == [50, 10, 0]


def test_the_newest_run_of_a_size_stays_while_decisions_rest_on_its_application(
    database: Engine,
) -> None:
    small = [put_run(database, started=f"2026-01-0{day}T00:00:00Z")[0] for day in (2, 1)]
    large, _ = put_run(database, tasks=32)
    other, _ = put_run(database, "/opt/other")
    stored_on(database, 1, *small, large, other)
    put_decisions(database, replace(DECISION, application_id=large.application.id))
    assert expire(database, RUNS) == 2
    assert left(database) == {small[0].id, large.id}


def test_old_outcomes_are_deleted(database: Engine) -> None:
    found = [put_outcome(database, f"{number}")[0] for number in range(3)]
    with transaction(database, write=True) as connection:
        for number, outcome in enumerate(found):
            of = outcomes.c.id == outcome.id
            reported_at = in_utc(NOON - (number - 1) * DAY)
            connection.execute(update(outcomes).where(of).values(reported_at=reported_at))
    assert expire(database, OUTCOMES) == 1
    with transaction(database) as connection:
        assert {row.outcome.id for row in joined_outcomes(connection)} == {1, 2}


def test_kept_results_expire_at_their_time(database: Engine) -> None:
    with transaction(database, write=True) as connection:
        for secret, days in (("short", 1), ("long", 2)):
            keep_result(connection, secret, "{}", now=NOON, days=days, room_bytes=100)
    assert counted(database, KEPT_RESULTS, NOON + DAY) == (0, 0)
    assert counted(database, KEPT_RESULTS, NOON + 1.5 * DAY) == (1, 2)
    assert expire(database, KEPT_RESULTS, NOON + 3 * DAY) == 2


def test_old_reports_of_the_queue_are_deleted(database: Engine) -> None:
    with transaction(database, write=True) as connection:
        for days in (1, 2, 3):
            report = QueueReport("here", 8, days, 0, 0, None)
            store_queue_report(connection, report, NOON - days * DAY)
    assert counted(database, QUEUE_REPORTS, NOON - 1.5 * DAY) == (2, 3)
    assert expire(database, QUEUE_REPORTS, NOON - 1.5 * DAY) == 2
    assert counted(database, QUEUE_REPORTS, NOON) == (1, 1)
