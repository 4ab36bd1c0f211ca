"""Where the real data are, `../shared/data` beside the project, and databases.

Every test that takes `database` or `location` runs on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine

from benchdb.store import open_database
from tests.support.postgresql import Server, programs, running_server

# Machines are noisy: what looks at a clock fails where nothing is wrong.
settings.register_profile(
    "without a clock", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("without a clock")

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        message = f"the real data are not here: {folder.name} beside the project is missing"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    if programs() is None:
        message = "no PostgreSQL server is installed; .ci/install-services does it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with running_server() as server:
        yield server


def _location(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield str(folder / f"bench{next(_numbers)}.sqlite")
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.lent_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that is not there yet, by what `--db` takes."""
    yield from _location(request.param, request, tmp_path)


@pytest.fixture
def postgresql_location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """One on PostgreSQL, for what only a server does."""
    yield from _location("postgresql", request, tmp_path)


@pytest.fixture(params=["to sqlite", "to postgresql"])
def other_location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second one, for what goes from one database to another."""
    yield from _location(request.param.removeprefix("to "), request, tmp_path)


@pytest.fixture(scope="session")
def new_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without any content; to be copied, which costs far less than making one."""
    path = tmp_path_factory.mktemp("new") / "new.sqlite"
    open_database(path).dispose()
    return path


@pytest.fixture
def database(location: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    if "://" not in location:
        shutil.copy(request.getfixturevalue("new_on_sqlite"), location)
    engine = open_database(location)
    yield engine
    engine.dispose()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have measured and recorded as such."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    for report in reports:
        for name, value in report.user_properties:
            if name == "measured" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {value}")
