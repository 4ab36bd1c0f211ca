"""Runs and outcomes are deleted with everything that belongs to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine, select

from benchdb.store.database import transaction
from ioncast.service.store.applications import applications
from ioncast.service.store.decisions import decision
from ioncast.service.store.deleting_runs import (
    DeletedRun,
    delete_decisions,
    delete_outcomes,
    delete_runs,
    deleted_after,
    forget_deleted,
    is_forgettable,
    last_forgotten,
)
from ioncast.service.store.outcomes import joined_outcomes
from ioncast.service.store.revisions import applications_after, newest
from ioncast.service.store.run_insights import NewInsights, store_insights
from ioncast.service.store.runs import StoredRun, runs_like
from ioncast.service.store.tables import insights, run_logs
from tests.support.history import DECISION, new_sha256, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def delete(engine: Engine, *found: StoredRun) -> None:
    with transaction(engine, write=True) as connection:
        delete_runs(connection, [run.id for run in found])


def left(engine: Engine) -> set[int]:
    with transaction(engine) as connection:
        return {run.id for run in runs_like(connection, "here")}


def told(engine: Engine, after: int = 0) -> list[DeletedRun]:
    with transaction(engine) as connection:
        return deleted_after(connection, after)


def test_a_run_goes_with_its_logs_and_insights_and_its_outcome_loses_it(database: Engine) -> None:
    log, more = new_sha256(), new_sha256()
    gone, _ = put_run(database, logs=[log, more])
    stays, _ = put_run(database)
    put_outcome(database, run_id=gone.id)
    documents = NewInsights(1, "{}", "{}", io_seconds=6.0, stake_seconds=1.5)
    with transaction(database, write=True) as connection:
        assert store_insights(connection, gone.id, [log, more], documents)
    delete(database, gone)
    assert left(database) == {stays.id}
    with transaction(database) as connection:
        assert list(connection.scalars(select(run_logs.c.run_id))) == [stays.id]
        assert list(connection.scalars(select(insights.c.id))) == []
        [joined] = joined_outcomes(connection)
        [listed] = applications(connection)
    assert (joined.outcome.run_id, joined.outcome.bandwidth_mib_s) == (None, 70.0)
    assert listed.runs == 1
    # The log can be sent again.
    assert put_run(database, logs=[log])[1]


def test_an_application_without_runs_goes_and_decisions_forget_it(database: Engine) -> None:
    first, _ = put_run(database)
    second, _ = put_run(database, started="2026-11-20T00:00:00Z")
    key = first.application.id
    put_decisions(database, replace(DECISION, application_id=key))
    delete(database, first)
    with transaction(database) as connection:
        [listed] = applications(connection)
        assert (listed.runs, listed.newest) == (1, second.started)
        assert decision(connection, DECISION.id).application_id == key
    delete(database, second)
    with transaction(database) as connection:
        assert applications(connection) == []
        assert decision(connection, DECISION.id).application_id is None


def test_after_deleting_the_newest_run_the_database_does_not_seem_older(database: Engine) -> None:
    kept, _ = put_run(database)
    gone, _ = put_run(database, "/opt/other")
    put_outcome(database, "1")
    last, _ = put_outcome(database, "2")
    with transaction(database, write=True) as connection:
        before = newest(connection)
        delete_runs(connection, [gone.id])
        delete_outcomes(connection, [last.id])
        after = newest(connection)
        assert after[0] > before[0]
        assert after[1] > before[1]
        assert applications_after(connection, *before) == {kept.application.id}


def test_services_are_told_how_deleted_runs_were_known(database: Engine) -> None:
    named, _ = put_run(database, name="night")
    twin, _ = put_run(database, name="night")
    plain, _ = put_run(database)
    delete(database, named, twin)
    assert told(database) == [DeletedRun(1, "here", "/opt/app", "ada", "night")]
    delete(database, plain)
    assert told(database, 1) == [DeletedRun(2, "here", "/opt/app", "ada", None)]


def test_deleted_runs_are_forgotten_and_their_numbers_are_not_given_again(
    database: Engine,
) -> None:
    delete(database, put_run(database)[0])
    later = datetime.now(timezone.utc) + timedelta(days=1)
    with transaction(database, write=True) as connection:
        assert not is_forgettable(connection, NOON)
        assert is_forgettable(connection, later)
        assert last_forgotten(connection) == 0
        forget_deleted(connection, later)
        assert last_forgotten(connection) == 1
    assert told(database) == []
    delete(database, put_run(database)[0])
    assert [run.number for run in told(database)] == [2]


def test_deleting_nothing_changes_nothing(database: Engine) -> None:
    put_run(database)
    with transaction(database, write=True) as connection:
        before: Any = newest(connection)
        delete_runs(connection, [])
        delete_outcomes(connection, [])
        delete_decisions(connection, [])
        assert newest(connection) == before
