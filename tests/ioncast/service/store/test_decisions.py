"""Decisions are stored once, listed by time, and counted by hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from benchdb.store.database import transaction
from ioncast.service.store.decisions import DecisionRow, decision, decisions, decisions_per_hour
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import in_utc
from tests.support.history import DECISION, put_decisions, put_outcome

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[4]
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
UNKNOWN = DecisionRow(
    id="unknown",
    asked_at="2026-11-21T12:00:00.000000+00:00",
    system="nowhere yet",
    user=None,
    executable=None,
    name=None,
    job_id=None,
    nodes=None,
    tasks=None,
    available=None,
    io_nodes=None,
    source="default",
    expected_mib_s=None,
    confidence=None,
    application_id=None,
    why="nothing is known of the job",
    curve=(),
)


def at(seconds: float) -> str:
    return in_utc(NOON + timedelta(seconds=seconds))


def kept(engine: Engine, **wanted: Any) -> list[str]:
    with transaction(engine) as connection:
        return [row.id for row in decisions(connection, **wanted)]


def one(engine: Engine, key: str) -> DecisionRow:
    with transaction(engine) as connection:
        return decision(connection, key)


@pytest.mark.parametrize("row", [DECISION, UNKNOWN], ids=["full", "empty"])
def test_a_decision_comes_back_as_it_was_stored(database: Engine, row: DecisionRow) -> None:
    assert put_decisions(database, row) == 1
    assert one(database, row.id) == row
    with transaction(database) as connection:
        assert decisions(connection) == [row]


def test_times_are_stored_in_utc_and_empty_texts_as_none(database: Engine) -> None:
    put_decisions(
        database, replace(DECISION, asked_at="2026-11-21T13:00:00+01:00", user="", job_id="")
    )
    row = one(database, DECISION.id)
    assert (row.asked_at, row.user, row.job_id) == (at(0), None, None)


def test_a_decision_is_stored_once(database: Engine) -> None:
    assert put_decisions(database, DECISION, DECISION, UNKNOWN) == 2
    assert put_decisions(database, replace(DECISION, io_nodes=0), UNKNOWN) == 0
    assert put_decisions(database) == 0
    assert one(database, DECISION.id) == DECISION


@pytest.mark.slow
def test_thousands_of_decisions_are_stored_at_once(database: Engine) -> None:
    rows = [replace(DECISION, id=f"d{i}", job_id=f"j{i}", asked_at=at(i)) for i in range(5000)]
    for i in range(0, 5000, 50):
        put_outcome(database, f"j{i}")
    put_decisions(database, *rows[:3000])
    statements: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert put_decisions(database, *rows) == 2000
    assert 0 < len(statements) < 50
    assert kept(database, limit=10_000) == [row.id for row in reversed(rows)]


BAD: dict[str, dict[str, Any]] = {
    "no id": {"id": ""},
    "a long id": {"id": "a" * 33},
    "no time": {"asked_at": "now"},
    "no system": {"system": ""},
    "a long user": {"user": "a" * 101},
    "a long executable": {"executable": "a" * 1001},
    "a long job": {"job_id": "1" * 101},
    "a NUL": {"name": "a\0"},
    "half a character": {"why": "a\ud800"},
    "no source": {"source": ""},
    "too many nodes": {"nodes": 2**31},
    "a negative number of I/O nodes": {"io_nodes": -1},
    "a negative application": {"application_id": -1},
    "an infinite bandwidth": {"expected_mib_s": float("inf")},
    "a confidence above 1": {"confidence": 1.01},
    "a confidence of NaN": {"confidence": float("nan")},
    "a curve with NaN": {"curve": ((0, 1.0, float("nan"), 1.0),)},
    "a curve with too many I/O nodes": {"curve": ((2**31, 1.0, 1.0, 1.0),)},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_decision_that_no_database_can_hold_is_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        replace(DECISION, **bad)


@pytest.mark.parametrize("key", ["d", "", "\0", "\ud800", "a" * 1000])
def test_a_missing_decision_is_unknown(database: Engine, key: str) -> None:
    put_decisions(database, DECISION)
    with pytest.raises(UnknownNameError):
        one(database, key)


def test_decisions_are_listed_newest_first(database: Engine) -> None:
    rows = [
        replace(DECISION, id=key, asked_at=at(second), system=system, application_id=application)
        for key, second, system, application in (
            ("b", 1, "here", 1),
            ("a", 1, "here", 2),
            ("c", 0, "there", 3),
            ("d", 2, "here", None),
            ("e", -0.5, "here", 1),
        )
    ]
    put_decisions(database, *rows)
    assert kept(database) == ["d", "b", "a", "c", "e"]
    assert kept(database, limit=2) == ["d", "b"]
    assert kept(database, before=(at(1), "b")) == ["a", "c", "e"]
    assert kept(database, before=("2026-11-21T13:00:01+01:00", "b"), limit=1) == ["a"]
    assert kept(database, system="there") == ["c"]
    assert kept(database, system="nowhere") == kept(database, system="\0") == []
    assert kept(database, application_id=1) == ["b", "e"]
    assert kept(database, application_id=2**70) == []
    assert kept(database, application_id=1, before=(at(1), "b")) == ["e"]


@pytest.mark.parametrize("before", [("now", "a"), (at(0), "a\0"), (at(0), "a" * 33)])
def test_an_invalid_page_is_rejected(database: Engine, before: tuple[str, str]) -> None:
    with pytest.raises(InputError):
        kept(database, before=before)


def test_decisions_are_counted_by_hour_and_source(database: Engine) -> None:
    seconds = {"history": (-3600, -1, 0, 3599), "model": (0, 1), "default": (3600,)}
    rows = [
        replace(DECISION, id=f"{source} {second}", source=source, asked_at=at(second))
        for source, several in seconds.items()
        for second in several
    ]
    put_decisions(database, *rows, replace(UNKNOWN, asked_at=at(0)))
    with transaction(database) as connection:
        zone = timezone(timedelta(hours=1))
        found = decisions_per_hour(connection, NOON.astimezone(zone), system="here")
        assert found == [
            ("2026-11-21T12:00:00+00:00", "history", 2),
            ("2026-11-21T12:00:00+00:00", "model", 2),
            ("2026-11-21T13:00:00+00:00", "default", 1),
        ]
        since = NOON - timedelta(seconds=1)
        # The hour of a time counts as a whole.
        before = ("2026-11-21T11:00:00+00:00", "history", 2)
        assert decisions_per_hour(connection, since, system="here") == [before, *found]
        others = decisions_per_hour(connection, NOON)
        assert others == [("2026-11-21T12:00:00+00:00", "default", 1), *found]
        assert decisions_per_hour(connection, NOON, system="nowhere") == []
