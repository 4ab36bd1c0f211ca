"""The page of an application reads only rows of its own, and only those that it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from benchdb.store.database import transaction
from ioncast.service.store.outcomes import (
    ids_of_users_outcomes,
    joined_outcomes,
    newest_outcomes_of,
)
from ioncast.service.store.runs import runs_of
from tests.support.history import DECISION, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

Read = Callable[[Connection], Any]
# Nodes of plans that read all rows of a table, or sort rows; each database has its own words.
SCANS = ("SCAN", "Seq Scan")
SORTS = ("TEMP B-TREE", "Sort")


def plan_of(engine: Engine, read: Read) -> list[str]:
    """The plan of the last query of a function, without nodes about subqueries of other tables."""
    queries: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        queries.append((statement, parameters))

    # A connection of the oldest SQLAlchemy has no events of its own.
    event.listen(engine, "before_cursor_execute", note)
    with transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            # With so few rows, the server would read all of them and sort them.
            for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
        read(connection)
        statement, parameters = queries[-1]
        explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
        plan = connection.exec_driver_sql(f"{explain} {statement}", parameters)
        return [str(row[-1]) for row in plan]


def nodes(plan: list[str], words: tuple[str, ...], table: str = "") -> list[str]:
    return [
        node for node in plan if any(word in node for word in words) and f" {table}" in f" {node}"
    ]


@pytest.fixture
def history(database: Engine) -> Engine:
    """Two applications, with runs, outcomes and decisions."""
    for number in range(6):
        run = put_run(database, f"/opt/app{number % 2}", started=f"2026-11-21T12:00:0{number}Z")[0]
        told = {"run_id": run.id} if number < 4 else {"decision_id": f"d{number}"}
        row = replace(DECISION, id=f"d{number}", job_id=f"{number}")
        put_decisions(database, replace(row, application_id=run.application.id))
        put_outcome(database, job_id=f"{number}", **told)
    return database


@pytest.mark.parametrize("before", [None, 3], ids=["first page", "next page"])
def test_a_page_of_runs_is_read_in_the_order_of_an_index(
    history: Engine, before: int | None
) -> None:
    plan = plan_of(history, lambda connection: runs_of(connection, 1, before=before, limit=2))
    assert any("ix_runs_application_id_time" in node for node in plan), plan
    assert nodes(plan, SORTS) == []
    assert nodes(plan, SCANS, "runs") == []


@pytest.mark.parametrize(
    "read",
    [
        lambda connection: newest_outcomes_of(connection, 1, limit=10),
        lambda connection: joined_outcomes(connection, application_id=1),
    ],
    ids=["newest", "joined"],
)
def test_outcomes_of_an_application_are_found_by_indexes(history: Engine, read: Read) -> None:
    plan = plan_of(history, read)
    for table in ("outcomes", "runs", "decisions"):
        assert nodes(plan, SCANS, table) == [], plan
    # An outcome without a run has the kind of I/O of the application's newest run.
    assert any("ix_runs_application_id_time" in node for node in plan), plan
    if history.dialect.name == "sqlite":
        assert "SEARCH outcomes USING INTEGER PRIMARY KEY (rowid=?)" in plan


def test_outcomes_of_a_user_are_found_without_reading_those_of_others(history: Engine) -> None:
    plan = plan_of(history, lambda connection: ids_of_users_outcomes(connection, "ada"))
    for table in ("outcomes", "runs"):
        assert nodes(plan, SCANS, table) == [], plan
    if history.dialect.name == "sqlite":
        assert "SEARCH outcomes USING INTEGER PRIMARY KEY (rowid=?)" in plan


def test_outcomes_of_an_application_are_those_of_its_runs_and_decisions(history: Engine) -> None:
    with transaction(history) as connection:
        for key, jobs in ((1, ["0", "2", "4"]), (2, ["1", "3", "5"])):
            found = newest_outcomes_of(connection, key, limit=10)
            assert [each.outcome.job_id for each in found] == jobs
            assert {each.application and each.application.id for each in found} == {key}
