"""Fixtures of all tests: the real data in `../shared/data` beside the project, and databases.

A test with `database` or `location` runs on SQLite. Marked with `both_databases`, it also runs on
PostgreSQL.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine

from benchdb.store.database import open_database
from tests.support import guard, services
from tests.support.databases import BOTH_DATABASES
from tests.support.examples import examples
from tests.support.postgresql import Server, running_server
from tests.support.pydarshan import skipped_without_pydarshan

# Machines are noisy: a deadline would fail although nothing is wrong.
settings.register_profile(
    "without a clock",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("without a clock")

PROJECT = Path(__file__).resolve().parents[1]
_OWN_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background jobs ignore Ctrl-C, and so would all programs that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.basetemp is None:
        # Each start of pytest closes its usual folder to other users, although daemons of another
        # run may use it as other users.
        config.option.basetemp = tempfile.mkdtemp(prefix="ioncast-tests-")
        config.stash[_OWN_FOLDER] = config.option.basetemp
    if not hasattr(config, "workerinput"):
        guard.start(str(Path(config.option.basetemp).resolve()))
    for name, service in services.SERVICES.items():
        config.addinivalue_line("markers", f"{name}: needs {service.what}")
    config.addinivalue_line("markers", "service: needs one of these; `make quick` leaves it out")
    config.addinivalue_line("markers", "promise(id): makes a fault of docs/promises.toml")
    config.addinivalue_line("markers", "slow: takes seconds; `make quick` leaves it out")
    config.addinivalue_line("markers", "both_databases: `location` is on SQLite and on PostgreSQL")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = session.config.stash.get(_OWN_FOLDER, None)
    if folder is not None and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_marked = metafunc.definition.get_closest_marker("both_databases")
    if is_marked and "location" in metafunc.fixturenames:
        metafunc.parametrize("location", BOTH_DATABASES, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        services.mark(item)
    # Files that take minutes start first, so that no worker waits for one of them at the end.
    items.sort(key=services.position)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    services.require(item)
    with skipped_without_pydarshan():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[object]:
    with skipped_without_pydarshan():
        return (yield)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        message = f"the real data are missing: there is no folder {folder}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


_numbers = itertools.count()


@pytest.fixture(scope="session")
def fio() -> str:
    services.use("fio")
    return "fio"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with running_server() as server:
        yield server


def _location(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield str(folder / f"bench{next(_numbers)}.sqlite")
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.lent_database() as url:
        yield url


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The location of a database that does not exist yet, as `--db` accepts it."""
    yield from _location(getattr(request, "param", "sqlite"), request, tmp_path)


@pytest.fixture
def postgresql_location(postgresql: Server) -> Iterator[str]:
    """The location of a database on PostgreSQL, for tests that need a server."""
    with postgresql.lent_database() as url:
        yield url


@pytest.fixture(params=BOTH_DATABASES)
def other_location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The location of a second database, for tests that copy between databases."""
    yield from _location(request.param, request, tmp_path)


@pytest.fixture(scope="session")
def new_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without content; to copy it costs far less than to create one."""
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
    """Print the measurements that tests recorded."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    for report in reports:
        for name, value in report.user_properties:
            if name == "measured" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {value}")
