"""Runs are found again by what is known of a job, and what changed is seen once."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from benchdb.history.decisions import DecisionRow, store_decisions, store_outcome
from benchdb.history.runs import (
    Run,
    application,
    applications,
    applications_after,
    newest,
    pattern_of_phases,
    program_of,
    runs_like,
    runs_of,
    store_run,
)
from benchdb.store.database import open_database, transaction
from benchdb.store.schema import runs as runs_table
from benchdb.store.schema import systems
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import instant
from summario.phases.tables import to_record
from summario.phases.values import Part, Phase

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[3]
PHASE = Phase(
    job=7,
    start_seconds=0.25,
    end_seconds=1 / 3,
    operation="write",
    rank=None,
    processes=16,
    nprocs=16,
    bytes=1 << 40,
    io_time_seconds=0.1,
    api="POSIX",
    requests=16,
    spatiality="contiguous",
    file_access="shared",
    n_files=1,
    mode_processes=16,
    parts=(Part(float(1 << 36), 16),),
    log="/größe/app.darshan",
)
_logs = itertools.count()


def sha256() -> str:
    return hashlib.sha256(f"log {next(_logs)}".encode()).hexdigest()


def put(engine: Engine, executable: str = "/opt/app", **changes: Any) -> tuple[Run, bool]:
    values: dict[str, Any] = {"system": "here", "user": "ada", "sha256": sha256(), "tasks": 16}
    values |= {"phases": [to_record(PHASE)], "executable": executable}
    with transaction(engine, write=True) as connection:
        return store_run(connection, **(values | changes))


def like(engine: Engine, **wanted: Any) -> list[int]:
    with transaction(engine) as connection:
        return [run.id for run in runs_like(connection, **({"system": "here"} | wanted))]


def of(engine: Engine, key: int, **page: Any) -> list[int]:
    with transaction(engine) as connection:
        return [run.id for run in runs_of(connection, key, **page)]


def listed(engine: Engine, **wanted: Any) -> list[str]:
    with transaction(engine) as connection:
        return [each.application.executable for each in applications(connection, **wanted)]


def seen(engine: Engine) -> tuple[int, int]:
    with transaction(engine) as connection:
        return newest(connection)


def changed(engine: Engine, since: tuple[int, int]) -> set[int]:
    with transaction(engine) as connection:
        return applications_after(connection, *since)


def report(engine: Engine, job_id: str, **values: Any) -> None:
    told: dict[str, Any] = {"system": "here", "io_nodes": 4, "bandwidth_mib_s": 70.0}
    with transaction(engine, write=True) as connection:
        store_outcome(connection, job_id=job_id, **(told | values))


def decide(engine: Engine, key: str, **values: Any) -> None:
    names = ("user", "executable", "name", "job_id", "nodes", "tasks", "available")
    unknown: dict[str, Any] = dict.fromkeys((*names, "expected_mib_s", "confidence"))
    told = {"system": "here", "asked_at": "2026-11-21", "io_nodes": 4, "source": "history"}
    told |= {"why": "it ran before", "curve": (), "application_id": None}
    with transaction(engine, write=True) as connection:
        store_decisions(connection, [DecisionRow(id=key, **(unknown | told | values))])


def test_a_run_comes_back_as_it_was_stored(database: Engine) -> None:
    stored, is_new = put(
        database,
        "/opt/größe/app",
        job_id="4711.batch",
        name="nightly run",
        nodes=8,
        io_nodes=0,
        bandwidth_mib_s=1 / 3,
        started="2026-11-21T05:15:02+01:00",
    )
    assert is_new
    with transaction(database) as connection:
        [found] = runs_like(connection, "here")
    assert found == stored
    assert found.application.executable == "/opt/größe/app"
    assert (found.application.program, found.application.user) == ("app", "ada")
    assert found.application.system == "here"
    assert (found.job_id, found.name, found.tasks) == ("4711.batch", "nightly run", 16)
    assert (found.nodes, found.io_nodes, found.bandwidth_mib_s) == (8, 0, 1 / 3)
    assert instant(found.started) == datetime(2026, 11, 21, 4, 15, 2, tzinfo=timezone.utc)
    moment = instant(found.stored_at)
    assert moment is not None
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)
    assert found.phases == (to_record(PHASE),)


def test_what_is_not_told_stays_unknown(database: Engine) -> None:
    run, _ = put(database, job_id="", name="", started="", phases=[])
    assert (run.job_id, run.name, run.started, run.phases) == (None, None, None, ())
    assert (run.nodes, run.io_nodes, run.bandwidth_mib_s) == (None, None, None)


def test_runs_of_a_program_of_a_user_on_a_system_are_one_application(database: Engine) -> None:
    first, again = put(database)[0], put(database)[0]
    others = [
        put(database, "/opt/other")[0],
        put(database, user="bob")[0],
        put(database, system="there")[0],
    ]
    assert first.application == again.application
    keys = [run.application.id for run in (first, *others)]
    assert len(set(keys)) == 4
    assert of(database, keys[0]) == [again.id, first.id]


def test_the_same_log_is_stored_once_on_a_system(database: Engine) -> None:
    log = sha256()
    first, _ = put(database, sha256=log)
    assert put(database, sha256=log) == (first, False)
    assert put(database, sha256=log, executable="/renamed", user="eve") == (first, False)
    assert listed(database) == ["/opt/app"]
    assert put(database, sha256=log, system="there")[1]


def test_what_was_not_known_of_a_log_is_filled_in(database: Engine) -> None:
    log = sha256()
    first, _ = put(database, sha256=log, nodes=8)
    told: dict[str, Any] = {"job_id": "7", "name": "night", "io_nodes": 4}
    told |= {"bandwidth_mib_s": 70.5, "started": "2026-11-21T04:15:02Z"}
    full, is_new = put(database, sha256=log, **told)
    assert not is_new
    told["started"] = "2026-11-21T04:15:02.000000+00:00"
    assert full == replace(first, **told)
    # Neither less nor the same changes it.
    assert put(database, sha256=log) == (full, False)
    assert put(database, sha256=log, **told) == (full, False)


@pytest.mark.parametrize(
    "other", [{"io_nodes": 2}, {"nodes": 4}, {"job_id": "8"}, {"name": "day"}], ids=str
)
def test_a_log_that_is_said_to_be_another_run_is_a_conflict(
    database: Engine, other: dict[str, Any]
) -> None:
    log = sha256()
    first, _ = put(database, sha256=log, io_nodes=0, nodes=8, job_id="7", name="night")
    before = seen(database)
    with pytest.raises(ConflictError, match="is stored already with") as caught:
        put(database, sha256=log, bandwidth_mib_s=1.0, **other)
    assert caught.value.http_status == 409
    assert put(database, sha256=log) == (first, False)
    assert seen(database) == before


BAD: dict[str, dict[str, Any]] = {
    "no process": {"tasks": 0},
    "too many processes": {"tasks": 2**31},
    "no node": {"nodes": 0},
    "less than no I/O node": {"io_nodes": -1},
    "too many I/O nodes": {"io_nodes": 2**31},
    "no bandwidth": {"bandwidth_mib_s": 0.0},
    "a bandwidth that is no number": {"bandwidth_mib_s": float("nan")},
    "an infinite bandwidth": {"bandwidth_mib_s": float("inf")},
    "no user": {"user": ""},
    "no executable": {"executable": ""},
    "a folder's executable": {"executable": "/"},
    "a long executable": {"executable": "/" + "a/" * 500},
    "an executable of many bytes": {"executable": "/" + "ä/" * 334},
    "a long program": {"executable": "a" * 256},
    "a NUL": {"executable": "/opt/\0app"},
    "half a character": {"user": "a\ud800"},
    "a long user": {"user": "a" * 101},
    "a long job": {"job_id": "1" * 101},
    "a long name": {"name": "a" * 201},
    "a NUL in the name": {"name": "a\0"},
    "a hash that is none": {"sha256": "A" * 64},
    "a short hash": {"sha256": "a" * 63},
    "a start that is none": {"started": "yesterday"},
    "a start before all time": {"started": "0001-01-01T00:00:00+12:00"},
    "a system's name that is none": {"system": " here"},
    "a system spelled otherwise": {"system": "HERE"},
    "a phase of no number": {"phases": [to_record(PHASE) | {"start": float("nan")}]},
    "a kind of I/O that is none": {"phases": [to_record(PHASE) | {"api": "a" * 101}]},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_and_nothing_is_stored(
    database: Engine, bad: dict[str, Any]
) -> None:
    put(database)
    before = seen(database), listed(database)
    with pytest.raises(InputError):
        put(database, **bad)
    assert (seen(database), listed(database)) == before
    with transaction(database) as connection:
        assert connection.scalars(select(systems.c.name)).all() == ["here"]


def test_the_longest_names_are_stored(database: Engine) -> None:
    """Of letters that take most bytes, which no index may refuse."""
    longest = {"user": "🜁" * 100, "name": "🜂" * 200, "job_id": "🜃" * 100}
    executable = "/" + "".join(chr(0x10000 + 97 * i) for i in range(63)) + "/" * 684 + "🜄" * 15
    assert len(executable.encode()) == 997
    run, _ = put(database, executable, system="🜁" * 200, **longest)
    assert like(database, system="🜁" * 200, executable=executable, name="🜂" * 200) == [run.id]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"executable": "/opt/app"}, [0, 2, 3]),
        ({"executable": "/opt/app", "user": "ada"}, [0, 2]),
        ({"executable": "/opt/app", "user": "ada", "name": "night"}, [2]),
        ({"program": "app"}, [0, 1, 2, 3]),
        ({"program": "app", "user": "bob"}, [3]),
        ({"name": "night"}, [2, 3]),
        ({"user": "ada", "name": "night"}, [2]),
        ({"executable": "app"}, []),
        ({"executable": "/OPT/APP"}, []),
        ({"name": "nigh"}, []),
        ({"user": "ad_"}, []),
        ({"user": "\0"}, []),
        ({"system": "there"}, [4]),
        ({"system": "nowhere"}, []),
    ],
    ids=str,
)
def test_all_that_is_given_must_match(
    database: Engine, wanted: dict[str, Any], expected: list[int]
) -> None:
    stored = [
        put(database)[0].id,
        put(database, "/home/ada/app")[0].id,
        put(database, name="night")[0].id,
        put(database, user="bob", name="night")[0].id,
        put(database, system="there")[0].id,
    ]
    assert sorted(like(database, **wanted)) == [stored[place] for place in expected]


def test_the_newest_runs_are_first_by_start_or_by_when_they_came(database: Engine) -> None:
    """A log may come long after its run."""
    today, old, older, unknown, zone = (
        put(database, started=when)[0].id
        for when in (
            datetime.now(timezone.utc).isoformat(),
            "2024-01-01",
            "2023-06-01T12:00:00Z",
            None,
            "2024-01-01T00:30:00+01:00",
        )
    )
    expected = [unknown, today, old, zone, older]
    assert like(database) == expected
    assert like(database, limit=2) == expected[:2]
    assert of(database, 1) == expected
    pages = [of(database, 1, limit=2)]
    while pages[-1]:
        pages.append(of(database, 1, limit=2, before=pages[-1][-1]))
    assert pages == [expected[:2], expected[2:4], expected[4:], []]


def test_runs_of_the_same_moment_are_paged_without_loss(database: Engine) -> None:
    keys = [put(database, started="2024-01-01")[0].id for _ in range(5)]
    assert of(database, 1) == keys[::-1]
    assert of(database, 1, before=keys[2]) == [keys[1], keys[0]]


def test_applications_are_listed_with_their_runs(database: Engine) -> None:
    put(database, started="2024-01-01")
    put(database, started="2025-01-01T00:00:00+01:00")
    put(database, "/opt/other", started="2020-01-01")
    with transaction(database) as connection:
        first, second = applications(connection)
        assert application(connection, first.application.id) == first
    assert (first.application.executable, first.runs) == ("/opt/app", 2)
    assert first.newest == "2024-12-31T23:00:00.000000+00:00"
    assert (second.application.executable, second.runs) == ("/opt/other", 1)


def test_applications_are_paged_by_their_ids(database: Engine) -> None:
    names = [f"/opt/{letter}" for letter in "edcba"]
    for name in names:
        put(database, name)
    assert listed(database) == names
    assert listed(database, limit=2) == names[:2]
    assert listed(database, limit=2, after=2) == names[2:4]
    assert listed(database, after=5) == []
    assert listed(database, after=2**70) == []


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("HACC", ["/opt/Hacc_IO"]),
        ("opt", ["/opt/Hacc_IO", "/opt/100%"]),
        ("BOB", ["/home/b"]),
        ("_", ["/opt/Hacc_IO"]),
        ("%", ["/opt/100%"]),
        ("\\", []),
        ("nothing", []),
        ("\0", []),
        ("", ["/opt/Hacc_IO", "/opt/100%", "/home/b"]),
    ],
)
def test_applications_are_searched_by_executable_and_user(
    database: Engine, search: str, expected: list[str]
) -> None:
    put(database, "/opt/Hacc_IO")
    put(database, "/opt/100%")
    put(database, "/home/b", user="Bob")
    assert listed(database, search=search) == expected


def test_applications_of_one_system_are_listed_alone(database: Engine) -> None:
    put(database)
    put(database, "/opt/there", system="there")
    assert listed(database, system="there") == ["/opt/there"]
    assert listed(database, system="there", search="app") == []
    assert listed(database, system="nowhere") == []


@pytest.mark.parametrize("key", [0, 3, -1, 2**31, 2**70])
def test_applications_and_runs_that_are_not_there_are_said_to_be_unknown(
    database: Engine, key: int
) -> None:
    put(database)
    put(database, "/opt/other")
    with transaction(database) as connection:
        with pytest.raises(UnknownNameError):
            application(connection, key)
        with pytest.raises(UnknownNameError):
            runs_of(connection, key)
        with pytest.raises(UnknownNameError):
            runs_of(connection, 1, before=key)
        # Another application's.
        with pytest.raises(UnknownNameError):
            runs_of(connection, 1, before=2)


def test_nothing_is_new_at_first(database: Engine) -> None:
    assert seen(database) == (0, 0)
    assert changed(database, (0, 0)) == set()


def test_a_new_run_is_seen_once(database: Engine) -> None:
    before = seen(database)
    app = put(database)[0].application.id
    other = put(database, "/opt/other")[0].application.id
    assert changed(database, before) == {app, other}
    before = seen(database)
    assert changed(database, before) == set()
    put(database)
    assert changed(database, before) == {app}


def test_a_run_that_was_filled_in_is_seen_again(database: Engine) -> None:
    log = sha256()
    app = put(database, sha256=log)[0].application.id
    put(database, "/opt/other")
    before = seen(database)
    put(database, sha256=log)
    assert changed(database, before) == set()
    put(database, sha256=log, io_nodes=4)
    assert changed(database, before) == {app}
    before = seen(database)
    assert changed(database, before) == set()


def test_an_outcome_is_of_the_application_of_its_run(database: Engine) -> None:
    run, _ = put(database)
    put(database, "/opt/other")
    before = seen(database)
    report(database, "1", run_id=run.id)
    assert changed(database, before) == {run.application.id}
    before = seen(database)
    report(database, "1", run_id=run.id)
    assert changed(database, before) == set()


def test_an_outcome_is_of_the_application_of_its_decision(database: Engine) -> None:
    app = put(database)[0].application.id
    decide(database, "d1", application_id=app)
    decide(database, "d2", job_id="2", application_id=app)
    decide(database, "d3", job_id="3")
    before = seen(database)
    report(database, "1", decision_id="d1")
    assert changed(database, before) == {app}
    before = seen(database)
    report(database, "2")
    assert changed(database, before) == {app}
    before = seen(database)
    report(database, "3")
    report(database, "4")
    assert changed(database, before) == set()


@pytest.mark.parametrize("told", [{"job_id": "1"}, {}], ids=["by its job", "by its id"])
def test_an_outcome_that_came_before_its_decision_is_seen_when_that_comes(
    database: Engine, told: dict[str, Any]
) -> None:
    app = put(database)[0].application.id
    report(database, "1", decision_id=None if told else "d1")
    before = seen(database)
    assert changed(database, before) == set()
    decide(database, "d1", application_id=app, **told)
    assert changed(database, before) == {app}
    # Stored again, it is nothing new.
    before = seen(database)
    decide(database, "d1", application_id=app, **told)
    assert changed(database, before) == set()


def test_an_outcome_that_gets_its_run_later_is_seen_again(database: Engine) -> None:
    run, _ = put(database)
    report(database, "1")
    before = seen(database)
    report(database, "1", run_id=run.id)
    assert changed(database, before) == {run.application.id}


def test_the_pattern_is_the_kind_of_io_that_moved_most_bytes(database: Engine) -> None:
    few = replace(PHASE, bytes=3, operation="read", spatiality="random")
    more = replace(PHASE, bytes=2)
    phases = [to_record(few), to_record(more), to_record(more)]
    assert pattern_of_phases(phases) == "write POSIX contiguous shared"
    assert pattern_of_phases(phases[:2]) == "read POSIX random shared"
    assert pattern_of_phases([]) is None
    put(database, phases=phases)
    with transaction(database) as connection:
        query = select(runs_table.c.pattern)
        assert connection.scalars(query).all() == ["write POSIX contiguous shared"]


@pytest.mark.parametrize(
    ("executable", "program"),
    [("/opt/bin/app", "app"), ("app", "app"), ("./app", "app"), ("/opt/app/", "app"), ("/", "")],
)
def test_a_program_is_the_executable_without_its_folder(executable: str, program: str) -> None:
    assert program_of(executable) == program


_STORE = """
import sys
from benchdb.history.runs import store_run
from benchdb.store.database import open_database, transaction

engine = open_database(sys.argv[1])
for number in range(20):
    with transaction(engine, write=True) as connection:
        run, new = store_run(
            connection, system="here", executable="/opt/app", user="ada",
            sha256=f"{number:064x}", tasks=16, phases=[], name=None,
        )
    print(int(new))
engine.dispose()
"""


@pytest.mark.slow
def test_the_same_logs_from_several_processes_are_stored_once(location: str) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _STORE, location], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=120)[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert [len(each) for each in printed] == [20] * 4
    assert sum(map(int, itertools.chain.from_iterable(printed))) == 20
    engine = open_database(location)
    assert seen(engine) == (20, 0)
    with transaction(engine) as connection:
        number = func.count(runs_table.c.revision.distinct())
        assert connection.scalar(select(number)) == 20
    assert listed(engine) == ["/opt/app"]
    engine.dispose()
