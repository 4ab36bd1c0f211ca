"""Services that tests need, with a marker for each.

A test that uses a service has its marker; otherwise `use` fails. Tests whose service is missing are
skipped; in CI they fail. `make quick` runs the tests that need no service.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments.platform.requirements import check_machine
from ioncast_base.errors import IoncastError

# The path of some users lacks the folders of daemons.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_SLURM = ("munged", "slurmctld", "slurmd", "slurmrestd", "sbatch", "scontrol")
_ACCOUNTING = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")
_LUA = ("lua5.1", "lua5.4")
_POSTGRESQL = Path("/usr/lib/postgresql")


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root can run these tests"


def _programs(*names: str) -> str:
    absent = [name for name in names if shutil.which(name, path=PATH) is None]
    return f"{', '.join(absent)} missing" if absent else ""


def _platform() -> str:
    try:
        check_machine()
    except IoncastError as error:
        return str(error)
    return ""


def _lua() -> str:
    without_socket = [
        version
        for version in _LUA
        if _programs(version) or subprocess.call([version, "-e", 'require "socket.unix"']) != 0
    ]
    return f"{', '.join(without_socket)} with lua-socket missing" if without_socket else ""


def _spark() -> str:
    return _programs("java") or ("" if find_spec("pyspark") else "pyspark missing")


def postgresql_programs() -> Path | None:
    """Find the folder of the newest installed PostgreSQL server."""
    folders = [path for path in _POSTGRESQL.glob("*/bin") if (path / "initdb").exists()]
    return max(folders, key=lambda path: int(path.parent.name), default=None)


@dataclass(frozen=True)
class Service:
    """A service that tests need.

    Attributes
    ----------
    what : str
        The programs and rights, in words, for `pytest --markers`.
    problem : callable
        A function that returns why this machine cannot run the service, or an empty text.
    """

    what: str
    problem: Callable[[], str]


SERVICES = {
    "browser": Service("Chromium", lambda: _programs("chromium")),
    "compiler": Service("a C compiler", lambda: _programs("cc")),
    "fio": Service("fio", lambda: _programs("fio")),
    "lua": Service("Lua 5.1 and 5.4 with lua-socket", _lua),
    "mpi": Service("MPICH and a C compiler", lambda: _programs("mpiexec", "mpicc", "cc")),
    "nginx": Service("nginx", lambda: _programs("nginx")),
    "platform": Service("an emulated platform, made by root with GlusterFS", _platform),
    "postgresql": Service(
        "a PostgreSQL server", lambda: "" if postgresql_programs() else "PostgreSQL missing"
    ),
    "prometheus": Service("Prometheus", lambda: _programs("prometheus")),
    "root": Service("root", _root),
    "serving": Service("`ioncast serve` in processes of its own", lambda: ""),
    "slurm": Service(
        "Slurm and MariaDB, started by root", lambda: _programs(*_SLURM, *_ACCOUNTING) or _root()
    ),
    "spark": Service("Spark and Java", _spark),
    "tools": Service("curl and ShellCheck", lambda: _programs("curl", "shellcheck")),
}
# Fixtures with the name of their service.
FIXTURES = {"browser", "fio", "postgresql"}
_LONGEST_FIRST = (
    "platform",
    "browser",
    "fio",
    "slurm",
    "spark",
    "serving",
    "both_databases",
    "slow",
)
problem = cache(lambda name: SERVICES[name].problem())
_marked: frozenset[str] = frozenset()


def mark(item: pytest.Item) -> None:
    """Mark a test that uses one of `FIXTURES`, and any test that needs a service with `service`."""
    for name in FIXTURES & set(getattr(item, "fixturenames", ())):
        item.add_marker(name)
    if _of(item):
        item.add_marker("service")


def position(item: pytest.Item) -> int:
    """Rank the file of a test by the duration of its tests, the longest first."""
    marks = {mark.name for each in item.listchain()[:-1] for mark in each.own_markers}
    ranks = (rank for rank, name in enumerate(_LONGEST_FIRST) if name in marks)
    return next(ranks, len(_LONGEST_FIRST))


def _of(item: pytest.Item) -> frozenset[str]:
    return frozenset(mark.name for mark in item.iter_markers()) & SERVICES.keys()


def require(item: pytest.Item) -> None:
    """Let a test use the services of its markers; skip it if one is missing."""
    global _marked  # noqa: PLW0603  only one test runs at a time
    _marked = _of(item)
    for name in sorted(_marked):
        if problem(name):
            message = f"{name}: {problem(name)}; .ci/install-services installs what tests need"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)


def allow(*names: str) -> None:
    """Let a program that is not a test, such as a benchmark, use services."""
    global _marked  # noqa: PLW0603  the program runs no tests
    _marked = frozenset(names)


def use(name: str) -> None:
    """Fail in a test that is not marked with the service."""
    if name not in _marked:
        pytest.fail(f"mark this test with `pytest.mark.{name}`: it uses {SERVICES[name].what}")
