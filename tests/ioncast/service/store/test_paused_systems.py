"""The decisions for a system are paused and resumed; the database remembers by whom and why."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from benchdb.store.database import open_database, opened_database, transaction
from benchdb.store.systems import system_id_of
from ioncast.cli import cli
from ioncast.service.store.paused_systems import (
    PausedSystem,
    pause_decisions,
    pauses,
    resume_decisions,
)
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import instant

pytestmark = pytest.mark.both_databases

Ioncast = Callable[..., Result]


@pytest.fixture
def systems(database: Engine) -> Engine:
    with transaction(database, write=True) as connection:
        for name in ("testbed", "mn4"):
            system_id_of(connection, name)
    return database


def pause(engine: Engine, *told: Any) -> PausedSystem | None:
    with transaction(engine, write=True) as connection:
        return pause_decisions(connection, *told)


def resume(engine: Engine, system: str = "testbed") -> bool:
    with transaction(engine, write=True) as connection:
        return resume_decisions(connection, system)


def paused(engine: Engine) -> list[PausedSystem]:
    with transaction(engine) as connection:
        return pauses(connection)


def test_a_system_is_paused_until_it_is_resumed(systems: Engine) -> None:
    assert pause(systems, "testbed", "alice", "größere Disks") is None
    assert pause(systems, "mn4", "bob") is None
    first, second = paused(systems)
    assert (first.system, first.paused_by, first.reason) == ("mn4", "bob", None)
    assert (second.system, second.paused_by, second.reason) == ("testbed", "alice", "größere Disks")
    moment = instant(second.paused_at)
    assert moment is not None
    assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)
    assert resume(systems)
    assert paused(systems) == [first]
    assert not resume(systems)


def test_the_first_pause_stays(systems: Engine) -> None:
    pause(systems, "testbed", "alice", "new disks")
    before = paused(systems)
    assert pause(systems, "testbed", "bob", "something else") == before[0]
    assert paused(systems) == before


def test_only_systems_of_the_database_are_paused(systems: Engine) -> None:
    for work in (lambda: pause(systems, "testbad", "alice"), lambda: resume(systems, "testbad")):
        with pytest.raises(UnknownNameError, match="no system 'testbad'; its systems are testbed"):
            work()
    assert paused(systems) == []


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "a\x1b[2J", "a\0", "a\ud800", "a" * 501])
def test_an_invalid_text_is_rejected(systems: Engine, text: str) -> None:
    with pytest.raises(InputError):
        pause(systems, "testbed", "alice", text)
    with pytest.raises(InputError):
        pause(systems, "testbed", text)
    assert paused(systems) == []


@pytest.fixture
def ioncast(location: str) -> Ioncast:
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        system_id_of(connection, "testbed")

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["decisions", *args, "--db", location])

    return run


def test_the_commands_pause_list_and_resume(ioncast: Ioncast) -> None:
    done = ioncast("pause", "testbed", "--by", "alice", "--reason", "new disks")
    assert (done.exit_code, done.stdout) == (0, "testbed: decisions are paused\n")
    [row] = json.loads(ioncast("list", "--format", "json").stdout)
    since = row.pop("paused_at")
    assert row == {
        "system": "testbed",
        "paused": True,
        "paused_by": "alice",
        "reason": "new disks",
    }
    again = ioncast("pause", "testbed", "--by", "bob").stdout
    assert again == f"testbed: was paused before, by alice at {since}\n"
    heading, _, line = ioncast("list").stdout.splitlines()
    assert heading.split() == ["system", "decisions", "by", "since", "reason"]
    assert line.split() == ["testbed", "paused", "alice", since, "new", "disks"]
    assert ioncast("resume", "testbed").stdout == "testbed: decisions are made again\n"
    assert ioncast("resume", "testbed").stdout == "testbed: was not paused\n"
    [row] = json.loads(ioncast("list", "--format", "json").stdout)
    assert (row["paused"], row["paused_by"]) == (False, None)


def test_somebody_pauses_also_without_a_name(ioncast: Ioncast) -> None:
    assert ioncast("pause", "testbed").exit_code == 0
    [row] = json.loads(ioncast("list", "--format", "json").stdout)
    assert row["paused_by"]


def test_an_empty_database_has_no_systems(location: str) -> None:
    open_database(location).dispose()
    assert CliRunner().invoke(cli, ["decisions", "list", "--db", location]).stdout == "no systems\n"


@pytest.mark.parametrize("command", [["pause", "mysite"], ["resume", "mysite"]])
def test_an_unknown_system_is_one_line_and_exit_code_2(location: str, command: list[str]) -> None:
    open_database(location).dispose()
    done = subprocess.run(
        [sys.executable, "-m", "ioncast", "decisions", *command, "--db", location],
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line == "ioncast: the database has no system 'mysite'; import measurements first"
