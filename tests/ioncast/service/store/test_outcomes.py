"""Outcomes are stored once, and find the decision that their job ran by."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, update

from benchdb.store.database import open_database, transaction
from benchdb.store.schema import systems
from ioncast.service.store.decisions import decisions
from ioncast.service.store.outcomes import JoinedOutcome, joined_outcomes, newest_outcomes
from ioncast.service.store.runs import StoredRun
from ioncast.service.store.same_run import Outcome
from ioncast.service.store.tables import outcomes
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import in_utc, instant
from tests.support.command import run_together
from tests.support.history import DECISION, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[4]
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def at(seconds: float) -> str:
    return in_utc(NOON + timedelta(seconds=seconds))


def ran(engine: Engine, executable: str = "/opt/app", **changes: Any) -> StoredRun:
    return put_run(engine, executable, **({"phases": []} | changes))[0]


def joined(engine: Engine, **wanted: Any) -> list[JoinedOutcome]:
    with transaction(engine) as connection:
        return joined_outcomes(connection, **wanted)


def jobs(engine: Engine, **wanted: Any) -> list[str]:
    return [each.outcome.job_id for each in joined(engine, **wanted)]


def decided(engine: Engine) -> dict[str, str | None]:
    """The decision of each job's outcome."""
    return {each.outcome.job_id: each.decision and each.decision.id for each in joined(engine)}


def test_an_outcome_comes_back_as_it_was_reported(database: Engine) -> None:
    run = ran(database)
    outcome, is_new = put_outcome(
        database, decision_id="d1", run_id=run.id, io_nodes=0, bandwidth_mib_s=1 / 3
    )
    assert is_new
    assert replace(outcome, reported_at="") == Outcome(
        1, "here", "4711", None, "d1", run.id, 0, 1 / 3, ""
    )
    moment = instant(outcome.reported_at)
    assert moment is not None
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)
    [found] = joined(database)
    assert found.outcome == outcome


def test_an_outcome_that_is_reported_again_stays_the_same(database: Engine) -> None:
    first, _ = put_outcome(database)
    assert put_outcome(database) == (first, False)
    run = ran(database)
    full = replace(first, decision_id="d1", run_id=run.id)
    assert put_outcome(database, decision_id="d1", run_id=run.id) == (full, False)
    assert put_outcome(database) == (full, False)
    assert put_outcome(database, "4712")[1]
    assert put_outcome(database, system="there")[1]


@pytest.mark.parametrize(
    "other", [{"io_nodes": 2}, {"bandwidth_mib_s": 70.5}, {"decision_id": "d2"}], ids=str
)
def test_another_outcome_of_the_same_job_is_a_conflict(
    database: Engine, other: dict[str, Any]
) -> None:
    first, _ = put_outcome(database, decision_id="d1")
    with pytest.raises(ConflictError, match="is already stored with"):
        put_outcome(database, **other)
    with pytest.raises(ConflictError):
        put_outcome(database, run_id=ran(database).id, **other)
    assert put_outcome(database) == (first, False)


def test_each_run_of_a_job_has_its_outcome(database: Engine) -> None:
    """Slurm starts a requeued job again with the same id, and uses ids again after MaxJobId."""
    first, _ = put_outcome(database, started=at(0), decision_id="d1")
    second, is_new = put_outcome(database, started=at(600), decision_id="d1", bandwidth_mib_s=35.0)
    assert is_new
    assert [each.outcome for each in joined(database)] == [first, second]
    with transaction(database) as connection:
        assert newest_outcomes(connection, limit=10) == joined(database)
    for started, bandwidth in ((0, 70.0), (600, 35.0)):
        again, is_new = put_outcome(database, started=at(started), bandwidth_mib_s=bandwidth)
        assert not is_new
        assert again.bandwidth_mib_s == bandwidth
        with pytest.raises(ConflictError, match="already stored with io_nodes 4, not 2"):
            put_outcome(database, started=at(started), bandwidth_mib_s=bandwidth, io_nodes=2)


def test_a_start_is_known_in_any_zone_and_form(database: Engine) -> None:
    first, _ = put_outcome(database, started="2026-11-21T12:00:00Z")
    assert first.started == "2026-11-21T12:00:00.000000+00:00"
    assert put_outcome(database, started="2026-11-21T14:00:00.25+02:00") == (first, False)


def test_the_start_of_a_log_is_the_start_of_its_outcome(database: Engine) -> None:
    logs = [ran(database, started=at(0.75)), ran(database, started=at(600.5))]
    found = [
        put_outcome(database, run_id=run.id, bandwidth_mib_s=mib_s)
        for run, mib_s in zip(logs, (70.0, 35.0), strict=True)
    ]
    assert [(outcome.started, is_new) for outcome, is_new in found] == [
        (at(0), True),
        (at(600), True),
    ]
    assert put_outcome(database, run_id=logs[0].id) == (found[0][0], False)


def test_the_schedulers_start_replaces_that_of_the_log(database: Engine) -> None:
    """A watch of the version before sent no start; the same log tells that it is the same run."""
    run = ran(database, started=at(3))
    first, _ = put_outcome(database, run_id=run.id)
    assert put_outcome(database, run_id=run.id, started=at(0)) == (
        replace(first, started=at(0)),
        False,
    )
    assert put_outcome(database, run_id=run.id)[0].started == at(0)
    with pytest.raises(ConflictError, match="already stored with started"):
        put_outcome(database, run_id=run.id, started=at(60))


def test_a_log_and_a_start_of_different_outcomes_are_a_conflict(database: Engine) -> None:
    run = ran(database, started=at(3))
    put_outcome(database, run_id=run.id)
    put_outcome(database, started=at(600))
    with pytest.raises(ConflictError, match="are stored in two outcomes"):
        put_outcome(database, run_id=run.id, started=at(600))


def test_a_report_without_a_start_is_about_the_newest_outcome(database: Engine) -> None:
    put_outcome(database, started=at(0))
    newest, _ = put_outcome(database, started=at(600), bandwidth_mib_s=35.0)
    assert put_outcome(database, bandwidth_mib_s=35.0) == (newest, False)
    with pytest.raises(ConflictError):
        put_outcome(database)
    # Five weeks later the id is another job's.
    with transaction(database, write=True) as connection:
        long_ago = in_utc(datetime.now(timezone.utc) - timedelta(weeks=5))
        connection.execute(update(outcomes).values(reported_at=long_ago))
    assert put_outcome(database)[1]
    assert not put_outcome(database)[1]


BAD_OUTCOMES: dict[str, dict[str, Any]] = {
    "no job": {"job_id": ""},
    "a long job": {"job_id": "1" * 101},
    "a NUL": {"job_id": "1\0"},
    "a long decision": {"decision_id": "a" * 33},
    "a negative number of I/O nodes": {"io_nodes": -1},
    "too many I/O nodes": {"io_nodes": 2**31},
    "a bandwidth of 0": {"bandwidth_mib_s": 0.0},
    "a bandwidth of NaN": {"bandwidth_mib_s": float("nan")},
    "a start that is not a time": {"started": "yesterday"},
    "an invalid name of a system": {"system": ""},
}


@pytest.mark.parametrize("bad", BAD_OUTCOMES.values(), ids=BAD_OUTCOMES)
def test_an_impossible_outcome_is_rejected_and_nothing_is_stored(
    database: Engine, bad: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        put_outcome(database, **bad)
    with transaction(database) as connection:
        assert connection.scalars(select(outcomes.c.id)).all() == []
        assert connection.scalars(select(systems.c.id)).all() == []


@pytest.mark.parametrize("run_id", [0, 2, -1, 2**31, 2**70])
def test_an_outcome_of_a_missing_run_is_rejected(database: Engine, run_id: int) -> None:
    ran(database)
    ran(database, system="there")
    with pytest.raises(UnknownNameError):
        put_outcome(database, run_id=run_id)
    assert joined(database) == []


def test_an_outcome_finds_the_decision_that_was_reported_with_it(database: Engine) -> None:
    rows = [
        replace(DECISION, id="d1", job_id="other"),
        replace(DECISION, id="d2", job_id="4711", asked_at=at(1)),
        replace(DECISION, id="d3", job_id="4712", system="there"),
    ]
    put_decisions(database, *rows)
    put_outcome(database, "4711", decision_id="d1")
    put_outcome(database, "4712", decision_id="d3")
    put_outcome(database, "4713", decision_id="not yet stored")
    # Decision d3 belongs to another system.
    assert decided(database) == {"4711": "d1", "4712": None, "4713": None}
    put_decisions(database, replace(DECISION, id="not yet stored"))
    assert decided(database)["4713"] == "not yet stored"
    [first, *_] = joined(database)
    assert first.decision == rows[0]


def test_an_outcome_without_a_decision_finds_the_last_decision_of_its_job(database: Engine) -> None:
    asked = {
        "d1": (-3, "here", "4711"),
        "d2": (-1, "here", "4711"),
        "d3": (-2, "here", "4711"),
        "another system's": (-0.5, "there", "4711"),
        "another job's": (-0.5, "here", "4712"),
        # A scheduler numbers its jobs from 1 again some day.
        "a later job's": (1, "here", "4711"),
    }
    present = datetime.now(timezone.utc)
    for key, (hours, system, job_id) in asked.items():
        moment = in_utc(present + timedelta(hours=hours))
        put_decisions(
            database, replace(DECISION, id=key, asked_at=moment, system=system, job_id=job_id)
        )
    put_outcome(database)
    put_outcome(database, "4713")
    assert decided(database) == {"4711": "d2", "4713": None}


def test_an_outcome_has_an_application_a_pattern_and_a_number_of_processes(
    database: Engine,
) -> None:
    kind = {"type": "write", "api": "POSIX", "spatiality": "random", "files": "shared"}
    run = ran(database, phases=[kind | {"bytes": 1}], started="2026-01-02", tasks=64)
    ran(database, phases=[kind | {"bytes": 1, "type": "read"}], started="2026-01-01")
    other = ran(database, "/opt/other")
    put_decisions(
        database,
        replace(DECISION, id="d1", application_id=run.application.id),
        replace(DECISION, id="d2", application_id=other.application.id),
        replace(DECISION, id="d3", application_id=None),
    )
    put_outcome(database, "by both", decision_id="d2", run_id=run.id)
    put_outcome(database, "by the decision", decision_id="d1")
    put_outcome(database, "by nothing", decision_id="d3")
    put_outcome(database, "by the other", decision_id="d2")
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
        put_outcome(database, str(number), system="there" if number == 2 else "here")
    assert jobs(database) == ["0", "1", "2", "3", "4"]
    assert jobs(database, limit=2) == ["0", "1"]
    assert jobs(database, limit=2, after=2) == ["2", "3"]
    assert jobs(database, system="there") == ["2"]
    assert jobs(database, system="nowhere") == jobs(database, system="\0") == []
    assert jobs(database, after=2**70) == []


def test_an_outcome_finds_the_last_decision_before_its_start(database: Engine) -> None:
    for key, seconds in {"d1": -600, "d2": 0.4, "d3": 300, "d4": 900}.items():
        put_decisions(database, replace(DECISION, id=key, job_id="4711", asked_at=at(seconds)))
    # Slurm tells whole seconds: the question of d2 is in the second of the start.
    for started, mib_s in ((0, 70.0), (600, 35.0)):
        put_outcome(database, started=at(started), bandwidth_mib_s=mib_s)
    assert [each.decision and each.decision.id for each in joined(database)] == ["d2", "d3"]


_STORE = """
import sys
from dataclasses import replace
from ioncast.service.store.decisions import store_decisions
from ioncast.service.store.outcomes import store_outcome
from benchdb.store.database import open_database, transaction
from tests.support.history import DECISION

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
    running = run_together(*[("-c", _STORE, location)] * 4)
    printed = [done.stdout.split() for done in running]
    assert [(done.returncode, done.stderr) for done in running] == [(0, "")] * 4
    assert sum(map(int, itertools.chain.from_iterable(printed))) == 420
    engine = open_database(location)
    with transaction(engine) as connection:
        assert len(decisions(connection, limit=1000)) == 400
    assert len(joined(engine)) == 20
    engine.dispose()
