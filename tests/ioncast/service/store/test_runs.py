"""Runs are stored once, completed later, and found by the values of a job."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from benchdb.store.database import open_database, transaction
from benchdb.store.schema import systems
from ioncast.service.store.applications import applications
from ioncast.service.store.revisions import newest
from ioncast.service.store.runs import pattern_of_phases, run_of, runs_like, runs_of
from ioncast.service.store.tables import runs as runs_table
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import instant
from summario.phases.tables import to_record
from tests.support.command import run_together
from tests.support.history import PHASE, new_sha256, put_run

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[4]


def executables(engine: Engine) -> list[str]:
    with transaction(engine) as connection:
        return [each.application.executable for each in applications(connection)]


def newest_revisions(engine: Engine) -> tuple[int, int]:
    with transaction(engine) as connection:
        return newest(connection)


def like(engine: Engine, **wanted: Any) -> list[int]:
    with transaction(engine) as connection:
        return [run.id for run in runs_like(connection, **({"system": "here"} | wanted))]


def of(engine: Engine, key: int, **page: Any) -> list[int]:
    with transaction(engine) as connection:
        return [run.id for run in runs_of(connection, key, **page)]


def test_a_run_comes_back_as_it_was_stored(database: Engine) -> None:
    stored, is_new = put_run(
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


def test_values_that_are_not_given_stay_unknown(database: Engine) -> None:
    run, _ = put_run(database, job_id="", name="", started="", phases=[])
    assert (run.job_id, run.name, run.started, run.phases) == (None, None, None, ())
    assert (run.nodes, run.io_nodes, run.bandwidth_mib_s) == (None, None, None)


def test_runs_of_a_program_of_a_user_on_a_system_are_one_application(database: Engine) -> None:
    first, again = put_run(database)[0], put_run(database)[0]
    others = [
        put_run(database, "/opt/other")[0],
        put_run(database, user="bob")[0],
        put_run(database, system="there")[0],
    ]
    assert first.application == again.application
    keys = [run.application.id for run in (first, *others)]
    assert len(set(keys)) == 4
    assert of(database, keys[0]) == [again.id, first.id]


def test_the_same_log_is_stored_once_on_a_system(database: Engine) -> None:
    log = new_sha256()
    first, _ = put_run(database, logs=[log])
    assert put_run(database, logs=[log]) == (first, False)
    assert put_run(database, logs=[log], executable="/renamed", user="eve") == (first, False)
    assert executables(database) == ["/opt/app"]
    assert put_run(database, logs=[log], system="there")[1]


def test_unknown_values_of_a_stored_log_are_filled_in(database: Engine) -> None:
    log = new_sha256()
    first, _ = put_run(database, logs=[log], nodes=8)
    told: dict[str, Any] = {"job_id": "7", "name": "night", "io_nodes": 4}
    told |= {"bandwidth_mib_s": 70.5, "started": "2026-11-21T04:15:02Z"}
    full, is_new = put_run(database, logs=[log], **told)
    assert not is_new
    told["started"] = "2026-11-21T04:15:02.000000+00:00"
    assert full == replace(first, **told)
    # Fewer values or the same values change nothing.
    assert put_run(database, logs=[log]) == (full, False)
    assert put_run(database, logs=[log], **told) == (full, False)


@pytest.mark.parametrize(
    "other", [{"io_nodes": 2}, {"nodes": 4}, {"job_id": "8"}, {"name": "day"}], ids=str
)
def test_a_stored_log_with_another_value_is_a_conflict(
    database: Engine, other: dict[str, Any]
) -> None:
    log = new_sha256()
    first, _ = put_run(database, logs=[log], io_nodes=0, nodes=8, job_id="7", name="night")
    before = newest_revisions(database)
    with pytest.raises(ConflictError, match="is already stored with") as caught:
        put_run(database, logs=[log], bandwidth_mib_s=1.0, **other)
    assert caught.value.http_status == 409
    assert put_run(database, logs=[log]) == (first, False)
    assert newest_revisions(database) == before


def test_the_number_of_nodes_in_the_log_counts_until_another_is_given(database: Engine) -> None:
    log = new_sha256()
    assert put_run(database, logs=[log], named_nodes=2)[0].nodes == 2
    assert put_run(database, logs=[log], named_nodes=2)[0].nodes == 2
    assert put_run(database, logs=[log], named_nodes=2, nodes=4)[0].nodes == 4
    # A client that does not know the number does not contradict it.
    assert put_run(database, logs=[log], named_nodes=2)[0].nodes == 4
    with pytest.raises(ConflictError, match="is already stored with nodes 4, not 8"):
        put_run(database, logs=[log], named_nodes=2, nodes=8)


def test_a_run_of_an_older_version_gets_the_number_of_nodes_in_the_log(database: Engine) -> None:
    log = new_sha256()
    assert put_run(database, logs=[log])[0].nodes is None
    assert put_run(database, logs=[log], named_nodes=2)[0].nodes == 2


def test_a_given_number_of_nodes_counts_more_than_that_of_the_log(database: Engine) -> None:
    assert put_run(database, nodes=4, named_nodes=2)[0].nodes == 4


BAD: dict[str, dict[str, Any]] = {
    "0 processes": {"tasks": 0},
    "too many processes": {"tasks": 2**31},
    "0 nodes": {"nodes": 0},
    "0 nodes in the log": {"named_nodes": 0},
    "a negative number of I/O nodes": {"io_nodes": -1},
    "too many I/O nodes": {"io_nodes": 2**31},
    "a bandwidth of 0": {"bandwidth_mib_s": 0.0},
    "a bandwidth of NaN": {"bandwidth_mib_s": float("nan")},
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
    "an invalid hash": {"logs": ["A" * 64]},
    "a short hash": {"logs": ["a" * 63]},
    "an invalid start": {"started": "yesterday"},
    "a start before the year 1 in UTC": {"started": "0001-01-01T00:00:00+12:00"},
    "an invalid name of a system": {"system": " here"},
    "another spelling of a system": {"system": "HERE"},
    "a phase with NaN": {"phases": [to_record(PHASE) | {"start": float("nan")}]},
    "a kind of I/O with a long api": {"phases": [to_record(PHASE) | {"api": "a" * 101}]},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_impossible_run_is_rejected_and_nothing_is_stored(
    database: Engine, bad: dict[str, Any]
) -> None:
    put_run(database)
    before = newest_revisions(database), executables(database)
    with pytest.raises(InputError):
        put_run(database, **bad)
    assert (newest_revisions(database), executables(database)) == before
    with transaction(database) as connection:
        assert connection.scalars(select(systems.c.name)).all() == ["here"]


def test_the_longest_names_are_stored(database: Engine) -> None:
    """The letters take four bytes each, and the index of PostgreSQL must hold them."""
    longest = {"user": "🜁" * 100, "name": "🜂" * 200, "job_id": "🜃" * 100}
    executable = "/" + "".join(chr(0x10000 + 97 * i) for i in range(63)) + "/" * 684 + "🜄" * 15
    assert len(executable.encode()) == 997
    run, _ = put_run(database, executable, system="🜁" * 200, **longest)
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
def test_runs_match_every_value_that_is_given(
    database: Engine, wanted: dict[str, Any], expected: list[int]
) -> None:
    stored = [
        put_run(database)[0].id,
        put_run(database, "/home/ada/app")[0].id,
        put_run(database, name="night")[0].id,
        put_run(database, user="bob", name="night")[0].id,
        put_run(database, system="there")[0].id,
    ]
    assert sorted(like(database, **wanted)) == [stored[place] for place in expected]


def test_the_newest_runs_come_first_by_start_or_by_storing_time(database: Engine) -> None:
    """A log may be stored long after its run."""
    today, old, older, unknown, zone = (
        put_run(database, started=when)[0].id
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


def test_many_runs_with_one_number_do_not_hide_those_with_another(database: Engine) -> None:
    runs = [
        put_run(database, started=f"2024-01-0{day + 1}", io_nodes=io_nodes)[0].id
        for day, io_nodes in enumerate([8, None, 8, 8, 0, 0])
    ]
    assert like(database, limit=2) == [runs[place] for place in (5, 4, 3, 2, 1)]


def test_runs_of_the_same_moment_are_paged_without_loss(database: Engine) -> None:
    keys = [put_run(database, started="2024-01-01")[0].id for _ in range(5)]
    assert of(database, 1) == keys[::-1]
    assert of(database, 1, before=keys[2]) == [keys[1], keys[0]]


@pytest.mark.parametrize("key", [0, 3, -1, 2**31, 2**70])
def test_a_missing_run_is_unknown(database: Engine, key: int) -> None:
    put_run(database)
    put_run(database, "/opt/other")
    with transaction(database) as connection:
        with pytest.raises(UnknownNameError):
            runs_of(connection, key)
        with pytest.raises(UnknownNameError):
            runs_of(connection, 1, before=key)
        with pytest.raises(UnknownNameError):
            run_of(connection, 1, key)


def test_a_run_of_another_application_is_unknown(database: Engine) -> None:
    first, other = put_run(database)[0], put_run(database, "/opt/other")[0]
    with transaction(database) as connection:
        assert run_of(connection, first.application.id, first.id) == first
        with pytest.raises(UnknownNameError):
            runs_of(connection, first.application.id, before=other.id)
        with pytest.raises(UnknownNameError):
            run_of(connection, first.application.id, other.id)


def test_the_pattern_is_the_kind_of_io_that_moved_most_bytes(database: Engine) -> None:
    few = replace(PHASE, bytes=3, operation="read", spatiality="random")
    more = replace(PHASE, bytes=2)
    phases = [to_record(few), to_record(more), to_record(more)]
    assert pattern_of_phases(phases) == "write POSIX contiguous shared"
    assert pattern_of_phases(phases[:2]) == "read POSIX random shared"
    assert pattern_of_phases([]) is None
    put_run(database, phases=phases)
    with transaction(database) as connection:
        query = select(runs_table.c.pattern)
        assert connection.scalars(query).all() == ["write POSIX contiguous shared"]


_STORE = """
import sys
from ioncast.service.store.runs import NewRun, store_run
from benchdb.store.database import open_database, transaction

engine = open_database(sys.argv[1])
for number in range(20):
    with transaction(engine, write=True) as connection:
        run, new = store_run(
            connection,
            NewRun(
                system="here", executable="/opt/app", user="ada",
                logs=[f"{number:064x}"], tasks=16, phases=[],
            ),
        )
    print(int(new))
engine.dispose()
"""


@pytest.mark.slow
def test_the_same_logs_from_several_processes_are_stored_once(location: str) -> None:
    running = run_together(*[("-c", _STORE, location)] * 4)
    printed = [done.stdout.split() for done in running]
    assert [(done.returncode, done.stderr) for done in running] == [(0, "")] * 4
    assert [len(each) for each in printed] == [20] * 4
    assert sum(map(int, itertools.chain.from_iterable(printed))) == 20
    engine = open_database(location)
    assert newest_revisions(engine) == (20, 0)
    with transaction(engine) as connection:
        number = func.count(runs_table.c.revision.distinct())
        assert connection.scalar(select(number)) == 20
    assert executables(engine) == ["/opt/app"]
    engine.dispose()


def test_a_run_of_several_logs_is_known_by_each_of_them(database: Engine) -> None:
    one, two, three = (new_sha256() for _ in range(3))
    first, is_new = put_run(database, logs=[two, one])
    assert is_new
    for known in ([one], [two], [one, two], [one, one]):
        assert put_run(database, logs=known) == (first, False)
    grown, is_new = put_run(database, logs=[one, two, three], tasks=17, bandwidth_mib_s=3.5)
    assert (grown.id, grown.tasks, grown.bandwidth_mib_s, is_new) == (first.id, 17, 3.5, True)
    assert put_run(database, logs=[three], tasks=1) == (grown, False)


def test_a_run_that_grows_keeps_its_application_and_what_was_told(database: Engine) -> None:
    one, two = new_sha256(), new_sha256()
    first, _ = put_run(database, logs=[one], io_nodes=4)
    grown, _ = put_run(database, executable="/opt/other", logs=[one, two], nodes=8)
    assert (grown.application, grown.io_nodes, grown.nodes) == (first.application, 4, 8)
    with pytest.raises(ConflictError):
        put_run(database, logs=[one, two, new_sha256()], io_nodes=0)
    assert put_run(database, logs=[two]) == (grown, False)


def test_more_logs_of_a_run_may_name_more_compute_nodes(database: Engine) -> None:
    one, two = new_sha256(), new_sha256()
    assert put_run(database, logs=[one], named_nodes=1)[0].nodes == 1
    assert put_run(database, logs=[one, two], named_nodes=2)[0].nodes == 2


def test_a_given_number_of_nodes_replaces_that_of_fewer_logs(database: Engine) -> None:
    one, two = new_sha256(), new_sha256()
    put_run(database, logs=[one], named_nodes=1)
    assert put_run(database, logs=[one, two], named_nodes=2, nodes=4)[0].nodes == 4
    # More logs do not contradict it.
    assert put_run(database, logs=[one, two, new_sha256()], named_nodes=3)[0].nodes == 4


def test_logs_of_different_runs_cannot_become_one(database: Engine) -> None:
    one, two, three = (new_sha256() for _ in range(3))
    first, _ = put_run(database, logs=[one, two])
    with pytest.raises(ConflictError, match="1 stored run with other logs"):
        put_run(database, logs=[two, three])
    put_run(database, logs=[three])
    with pytest.raises(ConflictError, match="2 stored runs with other logs"):
        put_run(database, logs=[one, two, three])
    assert put_run(database, logs=[one]) == (first, False)
    assert put_run(database, logs=[two, three], system="there")[1]


def test_the_hash_of_a_run_is_that_of_its_log_or_of_all_hashes(database: Engine) -> None:
    one, two = sorted(new_sha256() for _ in range(2))
    put_run(database, logs=[one])
    put_run(database, logs=[two, one], system="there")
    with transaction(database) as connection:
        alone, together = connection.scalars(select(runs_table.c.sha256).order_by(runs_table.c.id))
    assert alone == one
    assert together == hashlib.sha256(f"{one}\n{two}".encode()).hexdigest()
