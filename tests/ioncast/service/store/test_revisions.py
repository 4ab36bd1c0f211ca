"""Each change of a run or an outcome shows once, for the right application."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.revisions import applications_after, newest
from tests.support.history import DECISION, new_sha256, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases


def seen(engine: Engine) -> tuple[int, int]:
    with transaction(engine) as connection:
        return newest(connection)


def changed(engine: Engine, since: tuple[int, int]) -> set[int]:
    with transaction(engine) as connection:
        return applications_after(connection, *since)


def decide(engine: Engine, key: str, **changes: Any) -> None:
    unknown: dict[str, Any] = {"job_id": None, "application_id": None}
    put_decisions(engine, replace(DECISION, id=key, **(unknown | changes)))


def test_an_empty_history_has_no_changes(database: Engine) -> None:
    assert seen(database) == (0, 0)
    assert changed(database, (0, 0)) == set()


def test_a_new_run_is_a_change_once(database: Engine) -> None:
    before = seen(database)
    app = put_run(database)[0].application.id
    other = put_run(database, "/opt/other")[0].application.id
    assert changed(database, before) == {app, other}
    before = seen(database)
    assert changed(database, before) == set()
    put_run(database)
    assert changed(database, before) == {app}


def test_a_run_that_was_filled_in_is_a_change_again(database: Engine) -> None:
    log = new_sha256()
    app = put_run(database, logs=[log])[0].application.id
    put_run(database, "/opt/other")
    before = seen(database)
    put_run(database, logs=[log])
    assert changed(database, before) == set()
    put_run(database, logs=[log], io_nodes=4)
    assert changed(database, before) == {app}
    before = seen(database)
    assert changed(database, before) == set()


def test_an_outcome_changes_the_application_of_its_run(database: Engine) -> None:
    run, _ = put_run(database)
    put_run(database, "/opt/other")
    before = seen(database)
    put_outcome(database, "1", run_id=run.id)
    assert changed(database, before) == {run.application.id}
    before = seen(database)
    put_outcome(database, "1", run_id=run.id)
    assert changed(database, before) == set()


def test_an_outcome_changes_the_application_of_its_decision(database: Engine) -> None:
    app = put_run(database)[0].application.id
    decide(database, "d1", application_id=app)
    decide(database, "d2", job_id="2", application_id=app)
    decide(database, "d3", job_id="3")
    before = seen(database)
    put_outcome(database, "1", decision_id="d1")
    assert changed(database, before) == {app}
    before = seen(database)
    put_outcome(database, "2")
    assert changed(database, before) == {app}
    before = seen(database)
    put_outcome(database, "3")
    put_outcome(database, "4")
    assert changed(database, before) == set()


@pytest.mark.parametrize("told", [{"job_id": "1"}, {}], ids=["by its job", "by its id"])
def test_an_outcome_that_came_before_its_decision_is_a_change_when_the_decision_comes(
    database: Engine, told: dict[str, Any]
) -> None:
    app = put_run(database)[0].application.id
    put_outcome(database, "1", decision_id=None if told else "d1")
    before = seen(database)
    assert changed(database, before) == set()
    decide(database, "d1", application_id=app, **told)
    assert changed(database, before) == {app}
    # Stored again, it is nothing new.
    before = seen(database)
    decide(database, "d1", application_id=app, **told)
    assert changed(database, before) == set()


def test_an_outcome_that_gets_its_run_later_is_a_change_again(database: Engine) -> None:
    run, _ = put_run(database)
    put_outcome(database, "1")
    before = seen(database)
    put_outcome(database, "1", run_id=run.id)
    assert changed(database, before) == {run.application.id}
