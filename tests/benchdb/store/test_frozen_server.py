"""A PostgreSQL server whose processes are stopped: its kernel accepts bytes, nothing answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pytest
from psycopg.waiting import Ready, Wait
from sqlalchemy import Connection, Engine, text

from benchdb.store import silent_server
from benchdb.store.database import existing_database, open_database, transaction
from benchdb.store.silent_server import SilentServerError, answered
from benchdb.store.systems import system_names
from ioncast_base.errors import DatabaseError
from tests.support.postgresql import Server, running_server
from tests.support.serving import free_port, wait_for

pytestmark = pytest.mark.postgresql

_Result = TypeVar("_Result")
# Seconds after which a test says that a call never ends.
_NEVER_S = 120.0
# Seconds that a server on a busy machine may take for an answer.
_PATIENCE_S = 60.0
_SYSTEM = text("INSERT INTO systems (name) VALUES ('here')")


def ends(call: Callable[[], _Result]) -> _Result:
    """Call a function that must not wait for ever."""
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        return pool.submit(call).result(_NEVER_S)
    finally:
        pool.shutdown(wait=False)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of these tests alone, because a frozen one would stop others."""
    with running_server(free_port()) as server:
        yield server


@pytest.fixture(params=["socket", "tcp"])
def url(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    """An empty database."""
    with server.lent_database() as url:
        open_database(url).dispose()
        yield url if request.param == "socket" else server.over_tcp(url)


@pytest.fixture
def impatient(url: str) -> Iterator[Engine]:
    """An engine of the service that gives up soon, also on a server that is only slow."""
    engine = existing_database(url, patience_s=2)
    yield engine
    engine.dispose()


@pytest.fixture
def patient(url: str) -> Iterator[Engine]:
    """An engine of the service whose connections give up soon only if a test says so."""
    engine = existing_database(url, patience_s=_PATIENCE_S)
    yield engine
    engine.dispose()


@contextmanager
def frozen_under(connection: Connection, server: Server) -> Iterator[None]:
    """Stop the server under a connection, which gives up soon from now on."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, silent_server.ImpatientConnection)
    driver.patience_s = 2
    with server.frozen():
        yield


def names(engine: Engine) -> list[str]:
    with transaction(engine) as connection:
        return system_names(connection)


def names_at_last(engine: Engine) -> list[str]:
    """Read again until a server on a busy machine answers soon enough."""

    def attempt() -> list[list[str]]:
        try:
            return [names(engine)]
        except DatabaseError:
            return []

    found: list[str] = wait_for(attempt, "answer of the database")[0]
    return found


def assert_it_fails(engine: Engine) -> None:
    with pytest.raises(DatabaseError) as caught:
        ends(lambda: names(engine))
    assert "nothing was stored" in str(caught.value)


def test_a_connection_of_the_pool_fails_and_later_works_again(
    impatient: Engine, server: Server
) -> None:
    assert names_at_last(impatient) == []
    with server.frozen():
        assert_it_fails(impatient)
        assert_it_fails(impatient)
    assert names_at_last(impatient) == []


def test_a_new_connection_fails_and_later_works(impatient: Engine, server: Server) -> None:
    with server.frozen():
        assert_it_fails(impatient)
    assert names_at_last(impatient) == []


def test_a_statement_fails_and_its_connection_is_closed(patient: Engine, server: Server) -> None:
    def work() -> None:
        with transaction(patient, write=True) as connection:
            connection.execute(_SYSTEM)
            with frozen_under(connection, server):
                connection.execute(text("SELECT 1"))

    with pytest.raises(DatabaseError, match=r"has not answered for 2 s; nothing was stored"):
        ends(work)
    assert patient.pool.status().endswith("Current Checked out connections: 0")
    # The lock of writers and the half of a transaction end with the connection.
    assert names(patient) == []
    with transaction(patient, write=True) as connection:
        connection.execute(_SYSTEM)
    assert names(patient) == ["here"]


def test_a_commit_without_an_answer_does_not_claim_that_nothing_was_stored(
    patient: Engine, server: Server
) -> None:
    def work() -> None:
        with transaction(patient, write=True) as connection:
            connection.execute(_SYSTEM)
            stack.enter_context(frozen_under(connection, server))

    with (
        ExitStack() as stack,
        pytest.raises(DatabaseError, match=r"the data may have been stored"),
    ):
        ends(work)
    # The stopped server received the COMMIT.
    wait_for(lambda: names(patient) == ["here"], "the stored system")


def test_a_large_statement_that_no_buffer_holds_fails(patient: Engine, server: Server) -> None:
    def work() -> None:
        with transaction(patient) as connection, frozen_under(connection, server):
            connection.execute(text("SELECT length(:long)"), {"long": "x" * (64 << 20)})

    with pytest.raises(DatabaseError, match="has not answered for 2 s"):
        ends(work)
    assert names(patient) == []


def test_a_command_waits_as_long_as_its_statement_takes(server: Server) -> None:
    """Imports and upgrades are no requests: nobody cuts a statement of theirs."""
    with server.lent_database() as url:
        engine = open_database(url)
        with transaction(engine) as connection:
            assert connection.scalar(text("SHOW statement_timeout")) == "0"
            assert not isinstance(
                connection.connection.driver_connection, silent_server.ImpatientConnection
            )
        engine.dispose()


def waiting(readiness: list[int]) -> str:
    """Run a generator of a driver that waits for these states of a socket."""

    def driver() -> Iterator[Wait]:
        for _ in readiness:
            yield Wait.R
        return "rows"  # type: ignore[return-value]

    generator = answered(driver(), 5.0)  # type: ignore[arg-type]
    next(generator)
    try:
        for ready in readiness:
            generator.send(ready)  # type: ignore[arg-type]
    except StopIteration as end:
        return str(end.value)
    raise AssertionError("the generator goes on")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is three seconds after the one before."""
    now = iter(range(0, 1000, 3))
    monkeypatch.setattr(silent_server, "monotonic", lambda: float(next(now)))


def test_a_server_that_sends_something_may_take_longer(clock: None) -> None:
    assert waiting([Ready.NONE, Ready.R] * 10) == "rows"


def test_a_server_that_sends_nothing_is_given_up(clock: None) -> None:
    with pytest.raises(SilentServerError, match="has not answered for 5 s"):
        waiting([Ready.R, Ready.NONE, Ready.NONE, Ready.NONE])
