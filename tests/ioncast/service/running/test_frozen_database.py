"""Requests while the processes of the PostgreSQL server are stopped, by its socket and by TCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from benchdb.store import database
from ioncast.service.settings import Settings
from tests.support.command import run_ioncast
from tests.support.postgresql import Server, running_server
from tests.support.serving import asked_meanwhile, free_port, start, stop, wait_for

pytestmark = pytest.mark.postgresql

DECIDE = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of these tests alone, because a frozen one would stop others."""
    with running_server(free_port()) as server:
        yield server


@pytest.fixture(params=["socket", "tcp"])
def location(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    with server.lent_database() as url:
        yield url if request.param == "socket" else server.over_tcp(url)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"patience_s": 2})


def assert_to_be_sent_again(answer: TestResponse) -> None:
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json is not None
    assert answer.json["type"] == "urn:ioncast:database-unavailable"
    assert int(answer.headers["Retry-After"]) > 0


def answer_at_last(ask: Callable[[], TestResponse]) -> int:
    """Ask again, as the answer says, until a server on a busy machine answers soon enough."""

    def status() -> int:
        found = ask().status_code
        return 0 if found == 503 else found

    found: int = wait_for(status, "answer of the database")
    return found


@pytest.mark.promise("service-database-away")
def test_reading_and_writing_are_to_be_sent_again(
    client: FlaskClient, authorised: Callable[[str], dict[str, Any]], server: Server
) -> None:
    admin = authorised("admin")
    outcome = {"system": "s", "job_id": "7", "io_nodes": 4, "bandwidth_mib_s": 50.0}
    assert answer_at_last(lambda: client.get("/v1/systems")) == 200
    with server.frozen():
        assert_to_be_sent_again(client.get("/v1/systems"))
        assert_to_be_sent_again(client.post("/v1/outcomes", json=outcome, **admin))
        page = client.get("/applications", headers={"Accept": "text/html"})
        assert page.status_code == 503
        assert "text/html" in page.headers["Content-Type"]
    assert answer_at_last(lambda: client.get("/applications")) == 200
    # 200 if the server stored the outcome and its answer came too late.
    sent = answer_at_last(lambda: client.post("/v1/outcomes", json=outcome, **admin))
    assert sent in {200, 201}


@pytest.fixture
def add_token(location: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[int, str]]:
    """Run a command that opens the database; its exit code and its standard error."""
    monkeypatch.setattr(database, "_OPENING_S", 2.0)

    def run() -> tuple[int, str]:
        told = ("token", "add", "slurm", "--role", "admin", "--db", location)
        result = run_ioncast(*told)
        assert result.stdout == ""
        return result.returncode, result.stderr

    return run


def test_a_command_ends_with_one_line(
    server: Server, add_token: Callable[[], tuple[int, str]]
) -> None:
    with server.frozen():
        code, said = add_token()
    assert code == 2
    assert said.count("\n") == 1
    assert "the database cannot be opened: connection timeout expired" in said


def test_a_command_ends_if_the_server_stops_after_it_accepted_the_connection(
    server: Server, add_token: Callable[[], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_version = database._version
    with ExitStack() as stack:

        def stop_first(*told: Any) -> str | None:
            stack.enter_context(server.frozen())
            return read_version(*told)

        monkeypatch.setattr(database, "_version", stop_first)
        code, said = add_token()
    assert code == 2
    assert said.count("\n") == 1
    # On a busy machine the connection may take longer than the limit.
    assert "the database cannot be opened: " in said


@pytest.mark.promise("service-database-away-at-start")
@pytest.mark.serving
def test_the_first_start_of_the_service_says_that_it_starts_without_the_database(
    location: str, server: Server, tmp_path: Path
) -> None:
    with server.frozen():
        service = start(tmp_path, "--db", location, environment={"IONCAST_PATIENCE_S": "2"})
        try:
            wait_for(lambda: service.ask("/healthz").status == 200, "answer of the service")
            wait_for(lambda: service.decide(DECIDE).status == 200, "process for decisions")
            with asked_meanwhile(service, DECIDE):
                assert service.log.read_text().count("; the service starts without it\n") == 1
                assert service.ask("/readyz").status == 503
        finally:
            stop(service)
