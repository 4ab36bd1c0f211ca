"""The list of who wrote what has the writers of all changes, and no user of a job."""

from __future__ import annotations

import json
import os
import pwd
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from benchdb.store.writes import (
    Write,
    by_command,
    count_old_writes,
    delete_old_writes,
    note_write,
    writes,
)
from tests.support.command import run_ioncast
from tests.support.history import put_run

pytestmark = pytest.mark.both_databases

ME = f"command of {pwd.getpwuid(os.getuid()).pw_name}"
IOR = Path(__file__).resolve().parents[3] / "tests" / "ior_configs" / "fixtures"


def listed(engine: Engine, by: str | None = None) -> list[Write]:
    with transaction(engine) as connection:
        return writes(connection, by=by)


def note(engine: Engine, *told: object) -> None:
    with transaction(engine, write=True) as connection:
        note_write(connection, *told)  # type: ignore[arg-type]


def test_changes_are_listed_with_their_writers_the_newest_first(database: Engine) -> None:
    note(database, "token watch", "run", 7, "here")
    note(database, by_command(), "measurements", "a.csv")
    newest, first = listed(database)
    assert (first.by, first.kind, first.what, first.system) == ("token watch", "run", "7", "here")
    assert (newest.by, newest.kind, newest.what, newest.system) == (
        *(ME, "measurements"),
        *("a.csv", None),
    )
    assert [each.what for each in listed(database, by="token watch")] == ["7"]
    assert listed(database, by="nobody") == listed(database, by="\0") == []


@pytest.mark.parametrize("name", ["\0", "\ud800", "x" * 5000, "\x1b[2J"], ids=ascii)
def test_a_file_of_any_name_is_noted(database: Engine, name: str) -> None:
    note(database, ME, "measurements", name)
    [found] = listed(database)
    assert 0 < len(found.what) <= 1000


def test_old_changes_are_forgotten(database: Engine) -> None:
    note(database, ME, "run", 1)
    now = datetime.now(timezone.utc)
    for later, is_left in ((timedelta(days=-1), True), (timedelta(days=1), False)):
        with transaction(database, write=True) as connection:
            assert bool(count_old_writes(connection, now + later)) != is_left
            assert delete_old_writes(connection, now + later) == (not is_left)
        assert bool(listed(database)) == is_left


def test_the_commands_of_admins_note_who_ran_them(
    database: Engine, location: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("command,io_nodes,bandwidth_mib_s\nior -a POSIX -w -t 1m -b 4m,2,50\n")
    put_run(database, user="zuleika")
    for words in (
        ("bench", "import", file, "--system", "here", "--tasks", "4"),
        ("token", "add", "slurm", "--role", "admin"),
        ("token", "revoke", "slurm"),
        ("token", "revoke", "slurm"),
        ("history", "delete", "--user", "zuleika", "--yes"),
    ):
        result = run_ioncast(*words, "--db", location)
        assert result.returncode == 0, result.stderr
    told = ("history", "writes", "--db", location)
    rows = json.loads(run_ioncast(*told, "--format", "json").stdout)
    assert [(row["kind"], row["what"].rpartition("/")[2]) for row in rows] == [
        ("deletion", "a user: 1 run, 0 outcomes and 0 decisions"),
        ("token", "revoked slurm"),
        ("token", "added slurm"),
        ("measurements", "mine.csv"),
    ]
    assert {row["by"] for row in rows} == {ME}
    text = run_ioncast(*told, "--kind", "token", "--limit", "1").stdout
    assert "revoked slurm" in text
    assert "added" not in text
    assert run_ioncast(*told, "--by", "token x").stdout == "no changes\n"
