"""Clients that send requests in unusual pieces get their answers; nginx waits for slow ones."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator

import pytest

from tests.support.serving import PATIENCE_S, Served, running, wait_for

pytestmark = pytest.mark.serving

DECIDE = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("slow")
    with running(folder, "--db", str(folder / "db.sqlite")) as service:
        yield service


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S)


def is_closed(client: socket.socket) -> bool:
    """Tell whether the service has closed the connection, after whatever answer."""
    client.settimeout(0.05)
    with contextlib.suppress(TimeoutError):
        try:
            while client.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        return True
    return False


def test_a_head_that_comes_in_drops_is_answered(served: Served) -> None:
    def statuses() -> list[int]:
        found = []
        with connected(served) as client:
            for _ in range(2):
                for letter in f"GET {DECIDE} HTTP/1.1\r\nHost: x\r\n\r\n":
                    client.sendall(letter.encode())
                answer = http.client.HTTPResponse(client)
                answer.begin()
                found.append(answer.status)
                answer.read()
        return found

    # A busy machine may delay the client until its connection is closed; then it sends again.
    assert wait_for(statuses, "answers") == [200, 200]


def test_a_head_without_end_is_not_kept(served: Served) -> None:
    with connected(served) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\nX-A: " + b"a" * (1 << 20))
        wait_for(lambda: is_closed(client), "end of the connection")


def test_requests_that_come_together_are_all_answered(served: Served) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"

    def answers() -> bytes:
        with connected(served) as client:
            client.sendall((request + b"\r\n") * 4 + request + b"Connection: close\r\n\r\n")
            return b"".join(iter(lambda: client.recv(1 << 16), b""))

    found: bytes = wait_for(answers, "answers")
    assert found.count(b" 200 ") == 5


def test_an_answer_to_a_body_that_was_not_read_arrives(served: Served) -> None:
    body = b'{"system": "' + b"x" * (1 << 20) + b'"}'
    # A busy machine may delay the client until its connection is closed; then it sends again.
    answer = wait_for(lambda: served.ask("/v1/outcomes", method="POST", body=body), "answer")
    assert answer.status == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "name", ["SCRIPT_NAME", "PATH_INFO", "X-Forwarded-Proto", "X-Forwarded-For"]
)
def test_no_header_says_where_a_request_goes_or_comes_from(served: Served, name: str) -> None:
    value = {"PATH_INFO": "/metrics", "SCRIPT_NAME": "//evil.example"}.get(name, "https")
    answer = served.ask("/login", headers={name: value})
    assert answer.status in {200, 400}
    assert b"evil.example" not in answer.body
    assert b"ioncast_prepared_entries" not in answer.body
