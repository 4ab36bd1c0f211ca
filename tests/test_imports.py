"""Importing a module opens no file, starts no process and reads no environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_house import PROJECT, ROOMS, modules

PROGRAM = PROJECT / "tests/support/importing.py"
# Modules that are never imported, and why.
PROGRAMS = {
    "ioncast.__main__": "python -m ioncast runs it: it is the command",
    "benchdb.store.migrations.env": "Alembic runs it, with a connection to migrate",
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def noted(project: Path, *names: str) -> list[str]:
    """The lines that the program prints for some modules."""
    # pydantic looks for plugins when the first model is defined, in all installed packages.
    environment = os.environ | {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
    done = subprocess.run(
        [sys.executable, PROGRAM, project, *names],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_importing_a_module_opens_no_file_starts_no_process_and_reads_no_environment() -> None:
    names = {name_of(path) for room in ROOMS for path in modules(room)}
    assert set(PROGRAMS) <= names
    assert noted(PROJECT, *sorted(names - set(PROGRAMS))) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("open('/proc/stat').close()", "open /proc/stat"),
        ("import pathlib\npathlib.Path('/proc/stat').read_text()", "open /proc/stat"),
        ("import os\nos.listdir('/proc')", "os.listdir /proc"),
        ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen true"),
        ("import os\nif not os.fork(): os._exit(0)", "os.fork"),
        ("import socket\nsocket.socket().close()", "socket.__new__ <socket.socket"),
        ("import os\nos.environ.get('A')", "environment A"),
        ("import os\nHOME = dict(os.environ)", "environment"),
        ("import os\ndef read(name=os.getenv('B')): pass", "environment B"),
        ("import pathlib\npathlib.Path.home()", "environment HOME"),
        ("import ctypes\nctypes.CDLL(None)", "ctypes.dlopen None"),
    ],
)
def test_each_import_of_a_module_is_noticed(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "asking.py").write_text(body)
    (tmp_path / "another.py").write_text("import asking")
    lines = noted(tmp_path, "another")
    assert [line for line in lines if line.startswith(f"asking.py {said}")]


def test_imports_and_calls_of_functions_later_are_not_noticed(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text("import json, sqlite3\ndef read(): return open('/proc/stat')")
    assert noted(tmp_path, "lazy") == []


def test_no_module_that_pytest_collects_needs_pydarshan() -> None:
    # Python 3.13 has no wheel of it; the tests of those modules would not even be skipped.
    folders = [PROJECT / "tests", *(PROJECT / room for room in ROOMS)]
    needing = [
        name_of(path)
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"(?m)^(?:import|from) darshan\b", path.read_text(encoding="utf-8"))
    ]
    assert needing == []
