"""Insights are stored with their run, as long as they are made from all its logs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from benchdb.store.database import transaction
from ioncast.service.store.applications import applications
from ioncast.service.store.deleting_runs import delete_runs
from ioncast.service.store.revisions import newest
from ioncast.service.store.run_insights import (
    MOST_DOCUMENT_BYTES,
    Insights,
    NewInsights,
    insights_of,
    store_insights,
)
from ioncast.service.store.runs import StoredRun
from ioncast.service.store.tables import insights
from ioncast_base.errors import InputError
from ioncast_base.times import instant
from tests.support.history import new_sha256, put_run

pytestmark = pytest.mark.both_databases


def new(version: int = 1, **checks: Any) -> NewInsights:
    return NewInsights(version, json.dumps({"job": {"id": 7}}), json.dumps(checks), 6.0, 1.5)


def put(engine: Engine, run: StoredRun, logs: list[str], made: NewInsights) -> bool:
    with transaction(engine, write=True) as connection:
        return store_insights(connection, run.id, logs, made)


def read(engine: Engine, run: StoredRun) -> Insights | None:
    with transaction(engine) as connection:
        return insights_of(connection, run.id)


def test_insights_come_back_as_they_were_stored(database: Engine) -> None:
    logs = [new_sha256()]
    run, _ = put_run(database, logs=logs)
    hostile = "größe \0 \n </script> ' \" \N{RIGHT-TO-LEFT OVERRIDE}"
    assert put(database, run, logs, new(findings=[{"sentence": hostile}]))
    found = read(database, run)
    assert found is not None
    assert found.version == 1
    assert found.characterisation == {"job": {"id": 7}}
    assert found.checks == {"findings": [{"sentence": hostile}]}
    moment = instant(found.made_at)
    assert moment is not None
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)


def test_a_run_has_none_at_first_and_the_newest_ones_later(database: Engine) -> None:
    logs = [new_sha256()]
    run, other = put_run(database, logs=logs)[0], put_run(database)[0]
    assert read(database, run) is None
    for version in (1, 2):
        assert put(database, run, logs, new(version))
    found = read(database, run)
    assert found is not None
    assert found.version == 2
    assert read(database, other) is None
    with transaction(database) as connection:
        assert connection.scalar(select(func.count()).select_from(insights)) == 1


def times(engine: Engine) -> list[tuple[int, float, float]]:
    """The applications with most time in I/O first."""
    with transaction(engine) as connection:
        found = applications(connection, sort="io_seconds")
    return [(each.application.id, each.io_seconds, each.stake_seconds) for each in found]


def test_an_application_has_the_time_of_all_its_runs(database: Engine) -> None:
    logs = [new_sha256() for _ in range(3)]
    runs = [put_run(database, logs=[log])[0] for log in logs]
    [(key, *_)] = times(database)
    for number, seconds in ((0, 6.0), (1, 60.0), (2, 600.0), (2, 700.0)):
        made = NewInsights(1, "{}", "{}", io_seconds=seconds, stake_seconds=seconds / 4)
        assert put(database, runs[number], [logs[number]], made)
    assert times(database) == [(key, 766.0, 191.5)]
    with transaction(database, write=True) as connection:
        delete_runs(connection, [runs[2].id])
    assert times(database) == [(key, 66.0, 16.5)]


def test_insights_of_some_logs_are_not_those_of_the_run(database: Engine) -> None:
    logs = [new_sha256(), new_sha256()]
    run, _ = put_run(database, logs=logs)
    assert not put(database, run, logs[:1], new())
    assert read(database, run) is None
    assert put(database, run, logs[::-1], new())
    assert read(database, run) is not None


def test_insights_do_not_count_after_more_logs_joined_the_run(database: Engine) -> None:
    logs = [new_sha256(), new_sha256()]
    run, _ = put_run(database, logs=logs[:1])
    assert put(database, run, logs[:1], new())
    grown, _ = put_run(database, logs=logs)
    assert grown.id == run.id
    assert read(database, run) is None
    assert put(database, run, logs, new())
    assert read(database, run) is not None


def test_answers_to_schedulers_need_not_be_prepared_again(database: Engine) -> None:
    logs = [new_sha256()]
    run, _ = put_run(database, logs=logs)
    with transaction(database) as connection:
        before = newest(connection)
    assert put(database, run, logs, new())
    with transaction(database) as connection:
        assert newest(connection) == before


def test_a_document_that_is_too_large_is_rejected() -> None:
    text = json.dumps("x" * MOST_DOCUMENT_BYTES)
    with pytest.raises(InputError, match="checks: 524290 bytes, more than 524288"):
        NewInsights(1, "{}", text, 0.0, 0.0)
