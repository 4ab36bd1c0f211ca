"""Decisions are stored once, and what jobs got finds the decision that they ran by."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from benchdb.history.decisions import (
    DecisionRow,
    JoinedOutcome,
    Outcome,
    decision,
    decisions,
    decisions_per_hour,
    joined_outcomes,
    store_decisions,
    store_outcome,
)
from benchdb.history.runs import Run, store_run
from benchdb.store.database import open_database, transaction
from benchdb.store.schema import outcomes, systems
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import in_utc, instant

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DECISION = DecisionRow(
    id="0123456789abcdef0123456789abcdef",
    asked_at="2026-11-21T12:00:00.000250+00:00",
    system="here",
    user="ada",
    executable="/opt/größe/app",
    name="nightly run",
    job_id="4711",
    nodes=8,
    tasks=16,
    available=4,
    io_nodes=4,
    source="history",
    expected_mib_s=1 / 3,
    confidence=0.9,
    application_id=1,
    why="3 runs of the same executable; “4” is best",
    curve=((0, 0.25, 0.2, 0.3), (4, 1 / 3, 0.3, 0.4)),
)
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
_numbers = itertools.count()


def at(seconds: float) -> str:
    return in_utc(NOON + timedelta(seconds=seconds))


def keep(engine: Engine, *rows: DecisionRow) -> int:
    with transaction(engine, write=True) as connection:
        return store_decisions(connection, rows)


def kept(engine: Engine, **wanted: Any) -> list[str]:
    with transaction(engine) as connection:
        return [row.id for row in decisions(connection, **wanted)]


def one(engine: Engine, key: str) -> DecisionRow:
    with transaction(engine) as connection:
        return decision(connection, key)


def report(engine: Engine, job_id: str = "4711", **values: Any) -> tuple[Outcome, bool]:
    told: dict[str, Any] = {"system": "here", "io_nodes": 4, "bandwidth_mib_s": 70.0}
    with transaction(engine, write=True) as connection:
        return store_outcome(connection, job_id=job_id, **(told | values))


def ran(engine: Engine, executable: str = "/opt/app", **values: Any) -> Run:
    told: dict[str, Any] = {"system": "here", "user": "ada", "tasks": 16, "phases": []}
    told |= {"sha256": f"{next(_numbers):064x}"}
    with transaction(engine, write=True) as connection:
        return store_run(connection, executable=executable, **(told | values))[0]


def joined(engine: Engine, **wanted: Any) -> list[JoinedOutcome]:
    with transaction(engine) as connection:
        return joined_outcomes(connection, **wanted)


def jobs(engine: Engine, **wanted: Any) -> list[str]:
    return [each.outcome.job_id for each in joined(engine, **wanted)]


def decided(engine: Engine) -> dict[str, str | None]:
    """The decision of each job's outcome."""
    return {each.outcome.job_id: each.decision and each.decision.id for each in joined(engine)}


@pytest.mark.parametrize("row", [DECISION, UNKNOWN], ids=["full", "empty"])
def test_a_decision_comes_back_as_it_was_stored(database: Engine, row: DecisionRow) -> None:
    assert keep(database, row) == 1
    assert one(database, row.id) == row
    with transaction(database) as connection:
        assert decisions(connection) == [row]


def test_times_are_kept_in_utc_and_empty_texts_are_none(database: Engine) -> None:
    keep(database, replace(DECISION, asked_at="2026-11-21T13:00:00+01:00", user="", job_id=""))
    row = one(database, DECISION.id)
    assert (row.asked_at, row.user, row.job_id) == (at(0), None, None)


def test_a_decision_is_stored_once(database: Engine) -> None:
    assert keep(database, DECISION, DECISION, UNKNOWN) == 2
    assert keep(database, replace(DECISION, io_nodes=0), UNKNOWN) == 0
    assert keep(database) == 0
    assert one(database, DECISION.id) == DECISION


@pytest.mark.slow
def test_thousands_of_decisions_are_stored_at_once(database: Engine) -> None:
    rows = [replace(DECISION, id=f"d{i}", job_id=f"j{i}", asked_at=at(i)) for i in range(5000)]
    for i in range(0, 5000, 50):
        report(database, f"j{i}")
    keep(database, *rows[:3000])
    statements: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert keep(database, *rows) == 2000
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
    "less than no I/O node": {"io_nodes": -1},
    "a negative application": {"application_id": -1},
    "an infinite bandwidth": {"expected_mib_s": float("inf")},
    "more than sure": {"confidence": 1.01},
    "a confidence that is no number": {"confidence": float("nan")},
    "a curve of no number": {"curve": ((0, 1.0, float("nan"), 1.0),)},
    "a curve of too many": {"curve": ((2**31, 1.0, 1.0, 1.0),)},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_no_database_takes_is_no_decision(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        replace(DECISION, **bad)


@pytest.mark.parametrize("key", ["d", "", "\0", "\ud800", "a" * 1000])
def test_a_decision_that_is_not_there_is_said_to_be_unknown(database: Engine, key: str) -> None:
    keep(database, DECISION)
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
    keep(database, *rows)
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
def test_a_page_that_is_none_is_refused(database: Engine, before: tuple[str, str]) -> None:
    with pytest.raises(InputError):
        kept(database, before=before)


def test_decisions_are_counted_by_hour_and_source(database: Engine) -> None:
    seconds = {"history": (-3600, -1, 0, 3599), "model": (0, 1), "default": (3600,)}
    rows = [
        replace(DECISION, id=f"{source} {second}", source=source, asked_at=at(second))
        for source, several in seconds.items()
        for second in several
    ]
    keep(database, *rows, replace(UNKNOWN, asked_at=at(0)))
    with transaction(database) as connection:
        zone = timezone(timedelta(hours=1))
        found = decisions_per_hour(connection, NOON.astimezone(zone), system="here")
        assert found == [
            ("2026-11-21T12:00:00+00:00", "history", 2),
            ("2026-11-21T12:00:00+00:00", "model", 2),
            ("2026-11-21T13:00:00+00:00", "default", 1),
        ]
        since = NOON - timedelta(seconds=1)
        before = ("2026-11-21T11:00:00+00:00", "history", 1)
        assert decisions_per_hour(connection, since, system="here") == [before, *found]
        others = decisions_per_hour(connection, NOON)
        assert others == [("2026-11-21T12:00:00+00:00", "default", 1), *found]
        assert decisions_per_hour(connection, NOON, system="nowhere") == []


def test_an_outcome_comes_back_as_it_was_reported(database: Engine) -> None:
    run = ran(database)
    outcome, is_new = report(
        database, decision_id="d1", run_id=run.id, io_nodes=0, bandwidth_mib_s=1 / 3
    )
    assert is_new
    assert replace(outcome, reported_at="") == Outcome(
        1, "here", "4711", "d1", run.id, 0, 1 / 3, ""
    )
    moment = instant(outcome.reported_at)
    assert moment is not None
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)
    [found] = joined(database)
    assert found.outcome == outcome


def test_an_outcome_that_is_reported_again_is_the_same(database: Engine) -> None:
    first, _ = report(database)
    assert report(database) == (first, False)
    run = ran(database)
    full = replace(first, decision_id="d1", run_id=run.id)
    assert report(database, decision_id="d1", run_id=run.id) == (full, False)
    assert report(database) == (full, False)
    assert report(database, "4712")[1]
    assert report(database, system="there")[1]


@pytest.mark.parametrize(
    "other", [{"io_nodes": 2}, {"bandwidth_mib_s": 70.5}, {"decision_id": "d2"}], ids=str
)
def test_another_outcome_of_the_same_job_is_a_conflict(
    database: Engine, other: dict[str, Any]
) -> None:
    first, _ = report(database, decision_id="d1")
    with pytest.raises(ConflictError, match="is stored already with"):
        report(database, **other)
    with pytest.raises(ConflictError):
        report(database, run_id=ran(database).id, **other)
    assert report(database) == (first, False)


BAD_OUTCOMES: dict[str, dict[str, Any]] = {
    "no job": {"job_id": ""},
    "a long job": {"job_id": "1" * 101},
    "a NUL": {"job_id": "1\0"},
    "a long decision": {"decision_id": "a" * 33},
    "less than no I/O node": {"io_nodes": -1},
    "too many I/O nodes": {"io_nodes": 2**31},
    "no bandwidth": {"bandwidth_mib_s": 0.0},
    "a bandwidth of no number": {"bandwidth_mib_s": float("nan")},
    "a system's name that is none": {"system": ""},
}


@pytest.mark.parametrize("bad", BAD_OUTCOMES.values(), ids=BAD_OUTCOMES)
def test_what_cannot_be_an_outcome_is_refused(database: Engine, bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        report(database, **bad)
    with transaction(database) as connection:
        assert connection.scalars(select(outcomes.c.id)).all() == []
        assert connection.scalars(select(systems.c.id)).all() == []


@pytest.mark.parametrize("run_id", [0, 2, -1, 2**31, 2**70])
def test_an_outcome_of_a_run_that_is_not_there_is_refused(database: Engine, run_id: int) -> None:
    ran(database)
    ran(database, system="there")
    with pytest.raises(UnknownNameError):
        report(database, run_id=run_id)
    assert joined(database) == []


def test_an_outcome_finds_the_decision_that_was_reported_with_it(database: Engine) -> None:
    rows = [
        replace(DECISION, id="d1", job_id="other"),
        replace(DECISION, id="d2", job_id="4711", asked_at=at(1)),
        replace(DECISION, id="d3", job_id="4712", system="there"),
    ]
    keep(database, *rows)
    report(database, "4711", decision_id="d1")
    report(database, "4712", decision_id="d3")
    report(database, "4713", decision_id="not yet stored")
    # The second one is another system's.
    assert decided(database) == {"4711": "d1", "4712": None, "4713": None}
    keep(database, replace(DECISION, id="not yet stored"))
    assert decided(database)["4713"] == "not yet stored"
    [first, *_] = joined(database)
    assert first.decision == rows[0]


def test_an_outcome_without_one_finds_the_last_decision_of_its_job(database: Engine) -> None:
    asked = {
        "d1": (-3, "here", "4711"),
        "d2": (-1, "here", "4711"),
        "d3": (-2, "here", "4711"),
        "another system's": (-0.5, "there", "4711"),
        "another job's": (-0.5, "here", "4712"),
        # Schedulers begin again with their numbers some day.
        "a later job's": (1, "here", "4711"),
    }
    present = datetime.now(timezone.utc)
    for key, (hours, system, job_id) in asked.items():
        moment = in_utc(present + timedelta(hours=hours))
        keep(database, replace(DECISION, id=key, asked_at=moment, system=system, job_id=job_id))
    report(database)
    report(database, "4713")
    assert decided(database) == {"4711": "d2", "4713": None}


def test_an_outcome_knows_its_application_and_what_that_does(database: Engine) -> None:
    kind = {"type": "write", "api": "POSIX", "spatiality": "random", "files": "shared"}
    run = ran(database, phases=[kind | {"bytes": 1}], started="2026-01-02", tasks=64)
    ran(database, phases=[kind | {"bytes": 1, "type": "read"}], started="2026-01-01")
    other = ran(database, "/opt/other")
    keep(
        database,
        replace(DECISION, id="d1", application_id=run.application.id),
        replace(DECISION, id="d2", application_id=other.application.id),
        replace(DECISION, id="d3", application_id=None),
    )
    report(database, "by both", decision_id="d2", run_id=run.id)
    report(database, "by the decision", decision_id="d1")
    report(database, "by nothing", decision_id="d3")
    report(database, "by the other", decision_id="d2")
    everything = joined(database)
    assert [each.tasks for each in everything] == [64, 16, 16, 16]
    found = {each.outcome.job_id: (each.application, each.pattern) for each in everything}
    assert found == {
        "by both": (run.application, "write POSIX random shared"),
        "by the decision": (run.application, "write POSIX random shared"),
        "by nothing": (None, None),
        "by the other": (other.application, None),
    }
    assert jobs(database, application_id=run.application.id) == ["by both", "by the decision"]
    assert jobs(database, application_id=2**70) == []


def test_outcomes_are_paged_by_their_ids(database: Engine) -> None:
    for number in range(5):
        report(database, str(number), system="there" if number == 2 else "here")
    assert jobs(database) == ["0", "1", "2", "3", "4"]
    assert jobs(database, limit=2) == ["0", "1"]
    assert jobs(database, limit=2, after=2) == ["2", "3"]
    assert jobs(database, system="there") == ["2"]
    assert jobs(database, system="nowhere") == jobs(database, system="\0") == []
    assert jobs(database, after=2**70) == []


_STORE = """
import sys
from dataclasses import replace
from benchdb.history.decisions import store_decisions, store_outcome
from benchdb.store.database import open_database, transaction
from tests.benchdb.history.test_decisions import DECISION

engine = open_database(sys.argv[1])
for start in range(0, 400, 20):
    rows = [replace(DECISION, id=str(i), job_id=str(i)) for i in range(start, start + 20)]
    with transaction(engine, write=True) as connection:
        new = store_decisions(connection, rows)
        _, first = store_outcome(
            connection, system="here", job_id=str(start), io_nodes=4, bandwidth_mib_s=70.0
        )
    print(new + int(first))
engine.dispose()
"""


@pytest.mark.slow
def test_the_same_from_several_processes_is_stored_once(location: str) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _STORE, location], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=120)[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert sum(map(int, itertools.chain.from_iterable(printed))) == 420
    engine = open_database(location)
    assert len(kept(engine, limit=1000)) == 400
    assert len(joined(engine)) == 20
    engine.dispose()
