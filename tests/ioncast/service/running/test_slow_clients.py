"""Clients that send slowly, read nothing or never hang up do not delay others."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.serving import PATIENCE_S, Served, asked_meanwhile, running, wait_for

pytestmark = pytest.mark.serving

DECIDE = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"
THREADS = 4
# More clients than threads.
MANY = 12
# A question that waited for a slow client would take five seconds, until the service closes the
# client's connection.
SOON_S = 4.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("slow")
    options = ("--db", str(folder / "db.sqlite"), "--workers", "1", "--threads", str(THREADS))
    # Only the limit for bodies may end a slow upload, not the limit for reading it.
    with running(folder, *options, environment={"IONCAST_UPLOAD_S": "600"}) as service:
        yield service


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S)


@contextlib.contextmanager
def clients(served: Served, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connect many clients that send some bytes; at the end wait until all are disconnected."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(MANY):
            found.append(stack.enter_context(connected(served)))
            found[-1].sendall(sent)
        time.sleep(0.3)
        yield found
        for client in found:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
        wait_for(lambda: all(map(is_closed, found)), "end of all connections")


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


UPLOAD = (
    b"POST /v1/predictions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A", id="half a head"),
        pytest.param(b"\r\n\r\n", id="empty lines"),
        pytest.param(UPLOAD, id="half an upload"),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", id="no body"
        ),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="no hanging up"
        ),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHo",
            id="half a second request",
        ),
    ],
)
def test_decisions_do_not_wait_for_slow_clients(served: Served, sent: bytes) -> None:
    def longest_s() -> float:
        with clients(served, sent):
            times_s = [time.monotonic()]
            for _ in range(5):
                assert served.ask(DECIDE).status == 200
                times_s.append(time.monotonic())
        return max(after - before for before, after in pairwise(times_s))

    # A busy machine may delay some rounds, but a slow client would delay all.
    wait_for(lambda: longest_s() < SOON_S, "decision that came soon")


def test_a_connection_without_a_whole_request_is_closed(served: Served) -> None:
    with clients(served, b"GET / HTTP/1.1\r\nX-A: ") as waiting:
        for number, client in enumerate(waiting):
            wait_for(lambda client=client: is_closed(client), f"end of connection {number}")


@pytest.mark.promise("service-no-free-threads")
def test_uploads_beyond_half_of_the_threads_are_asked_to_come_again(served: Served) -> None:
    expected = MANY - THREADS // 2

    def refusals() -> int:
        with clients(served, UPLOAD) as sending:
            wait_for(lambda: len(answered(sending)) >= expected, "answers")
            answers = [client.recv(1 << 16) for client in answered(sending)]
        refused = [answer for answer in answers if b" 503 " in answer]
        assert all(b"Retry-After" in answer for answer in refused)
        return len(refused)

    # On a busy machine some uploads come when others have already lost their places.
    with asked_meanwhile(served, DECIDE):
        wait_for(lambda: refusals() == expected, f"{expected} refusals")


def answered(sending: list[socket.socket]) -> list[socket.socket]:
    return select.select(sending, [], [], 0)[0]


@pytest.mark.promise("service-no-free-threads")
def test_clients_that_never_finish_their_bodies_lose_their_places(served: Served) -> None:
    def answers() -> list[tuple[int, str | None]]:
        with contextlib.ExitStack() as stack:
            unfinished = [stack.enter_context(connected(served)) for _ in range(THREADS // 2)]
            for client in unfinished:
                client.sendall(UPLOAD)
            found = [answer_to(client) for client in unfinished]
            return [(each.status, each.getheader("Content-Type")) for each in found]

    late = [(408, "application/problem+json")] * (THREADS // 2)
    with asked_meanwhile(served, DECIDE):
        # The clients of the test before may still have a place for a moment.
        wait_for(lambda: answers() == late, "answers")
    wait_for(lambda: status_of_an_upload(served) == 401, "free place")


def status_of_an_upload(served: Served) -> int:
    return served.ask("/v1/outcomes", method="POST", body=b"{}").status


def answer_to(client: socket.socket) -> http.client.HTTPResponse:
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer


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
