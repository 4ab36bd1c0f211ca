"""Commands tell syslog who wrote what, in one line, and never wait for it."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from benchdb.store import writes
from benchdb.store.writes import tell_syslog
from ioncast.cli import cli
from tests.support.history import put_run

NAMES = ["a\0b", "\ud800", "x" * 5000, "\x1b[2J", "a\nb", "\u2028"]
ME = f"command of {pwd.getpwuid(os.getuid()).pw_name}"


@pytest.fixture
def syslog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket of a syslog that takes some lines and reads none."""
    place = str(tmp_path / "log")
    monkeypatch.setattr(writes, "_SYSLOG", place)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(place)
        listening.setblocking(False)
        yield listening


def read(syslog: socket.socket) -> list[str]:
    """The lines that the syslog has got, without their priority and process."""
    found = []
    while True:
        try:
            start, _, line = syslog.recv(10_000).decode().partition("]: ")
        except BlockingIOError:
            return found
        assert start == f"<13>ioncast[{os.getpid()}"
        found.append(line)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_file_of_any_name_is_one_harmless_line(syslog: socket.socket, name: str) -> None:
    tell_syslog("measurements", name, "my\nsite")
    [line] = read(syslog)
    assert line.startswith(f"{ME} on 'my\\nsite': measurements ")
    assert line.isprintable()
    assert len(line) < 1100


def test_a_syslog_that_reads_nothing_delays_nobody(syslog: socket.socket) -> None:
    for number in range(2000):
        tell_syslog("run", number)
    assert 0 < len(read(syslog)) < 2000


def test_without_a_syslog_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "_SYSLOG", str(tmp_path / "missing"))
    tell_syslog("run", 1)


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_commands_of_admins_tell_who_ran_them(
    database: Engine, location: str, tmp_path: Path, syslog: socket.socket
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("command,io_nodes,bandwidth_mib_s\nior -a POSIX -w -t 1m -b 4m,2,50\n")
    put_run(database, user="zuleika")
    import_file = ("bench", "import", str(file), "--system", "here", "--tasks", "4")
    for words in (
        *(import_file, import_file),
        ("token", "add", "slurm", "--role", "admin"),
        ("token", "revoke", "slurm"),
        ("token", "revoke", "slurm"),
        ("system", "changed", "here", "--since", "2026-11-20T10:30:00Z", "--why", "new disks"),
        ("system", "undo", "here"),
        ("history", "delete", "--user", "zuleika", "--yes"),
    ):
        assert CliRunner().invoke(cli, [*words, "--db", location]).exit_code == 0
    assert read(syslog) == [
        f"{ME} on here: measurements {file}",
        f"{ME}: token added slurm",
        f"{ME}: token revoked slurm",
        f"{ME} on here: change since 2026-11-20 10:30:00 UTC: new disks",
        f"{ME} on here: change undone: since 2026-11-20 10:30:00 UTC: new disks",
        f"{ME}: deletion a user: 1 run, 0 outcomes and 0 decisions",
    ]
