"""The application with a database of its own, on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import BytecodeCache, FileSystemBytecodeCache
from sqlalchemy import Engine, make_url

from benchdb.store.database import opened_database, transaction
from ioncast.service.background import process as keepers
from ioncast.service.background import summary_step
from ioncast.service.background.process import Keeper
from ioncast.service.context import Service
from ioncast.service.running.demo_data import TESTBED, fill
from ioncast.service.settings import Settings
from ioncast.service.store.tokens import add_token
from ioncast.service.web.app import create_app
from ioncast.service.web.results import advised
from ioncast.service.web.sandbox import child
from tests.support.command import run_ioncast
from tests.support.made_once import made_once
from tests.support.postgresql import Server

LOGS = Path(__file__).resolve().parents[2] / "summario" / "fixtures"


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Keepers and advice of this process do not give up, also on a busy machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keepers, "_PATIENCE_S", 60.0)
        patched.setattr(keepers, "_SILENCE_S", 60.0)
        patched.setattr(summary_step, "_COUNTING_S", 60.0)
        patched.setattr(advised, "_ADVICE_S", 600)
        patched.setattr(child, "_START_S", 600)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    """The program that forks readers of uploads ends before the interpreter."""
    yield
    if child._SERVER._process is not None:
        child._SERVER._process.kill()
        child._SERVER._process.wait()


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """`time.time` stands still, so that a limit for each minute does not begin anew."""
    now_s = time.time()
    monkeypatch.setattr("time.time", lambda: now_s)


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path) -> Settings:
    """Settings of a new service with an empty database and with long time limits."""
    return Settings(database=location, state=str(tmp_path / "state"), patience_s=60, upload_s=600)


@pytest.fixture(scope="session")
def compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> BytecodeCache:
    """The templates of all applications, because to compile them takes longer than most tests."""
    return FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))


@pytest.fixture
def app(settings: Settings, compiled_templates: BytecodeCache) -> Iterator[Flask]:
    made = create_app(settings)
    made.jinja_env.bytecode_cache = compiled_templates
    service: Service = made.extensions["ioncast"]
    yield made
    service.prepared.close()
    service.spool.close()
    service.database.dispose()


@pytest.fixture
def service(app: Flask) -> Service:
    found: Service = app.extensions["ioncast"]
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def keep(settings: Settings, service: Service) -> Iterator[Callable[[], None]]:
    """Let the keeper do all its work, and the application read the result."""
    keeper = Keeper(settings)

    def rounds() -> None:
        keeper.round(time.time(), time.time())
        while keeper.is_behind:
            keeper.round(time.time(), time.time())
        service.prepared.refresh()

    yield rounds
    keeper.close()


@pytest.fixture
def authorised(settings: Settings, keep: Callable[[], None]) -> Callable[[str], dict[str, Any]]:
    """Make the arguments of a request with a token of a role."""

    def make(role: str) -> dict[str, Any]:
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            token = add_token(c, f"a {role}", role)
        keep()
        return {"headers": {"Authorization": f"Bearer {token}"}}

    return make


@pytest.fixture(scope="session")
def demo_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demonstration's data, to be copied."""
    folder = made_once(tmp_path_factory, "demo", lambda new: fill(str(new / "demo.sqlite")))
    return folder / "demo.sqlite"


@pytest.fixture(scope="session")
def demo_on_postgresql(postgresql: Server) -> Iterator[str]:
    """The name of a PostgreSQL database with the demonstration's data, to be copied."""
    with postgresql.database("demo") as url:
        fill(url)
        yield "demo"


@pytest.fixture(scope="session")
def site_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of `ioncast ingest` with logs of one system, also those of the demonstration."""

    def make(new: Path) -> None:
        done = run_ioncast("ingest", LOGS, TESTBED / "logs", "--system", "here", "--store", new)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "site_store", make)


@pytest.fixture
def filled_location(location: str, request: pytest.FixtureRequest) -> str:
    """A database with benchmarks, runs and outcomes of three applications."""
    if "://" not in location:
        shutil.copy(request.getfixturevalue("demo_on_sqlite"), location)
    else:
        server: Server = request.getfixturevalue("postgresql")
        name = make_url(location).database
        assert name is not None
        server.copy(request.getfixturevalue("demo_on_postgresql"), name)
    return location


@pytest.fixture
def filled(settings: Settings, filled_location: str, keep: Callable[[], None]) -> None:
    """The application has prepared answers for the demonstration's data."""
    assert settings.database == filled_location
    keep()
