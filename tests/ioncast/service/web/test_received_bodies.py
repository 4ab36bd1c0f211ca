from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ioncast.service.web import received_bodies
from ioncast.service.web.http.problems import RequestError
from ioncast.service.web.received_bodies import BodySocket


class Clock:
    """A clock that a test moves."""

    now_s = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(received_bodies, "monotonic", lambda: clock.now_s)
    return clock


class Client:
    """The client's socket, which waits some seconds before each piece of the body."""

    def __init__(self, clock: Clock, pieces: Iterator[tuple[float, bytes]]) -> None:
        self._clock = clock
        self._pieces = pieces
        self._limit_s: float | None = None

    def gettimeout(self) -> float | None:
        return self._limit_s

    def settimeout(self, limit_s: float | None) -> None:
        self._limit_s = limit_s

    def recv(self, most_bytes: int) -> bytes:
        wait_s, piece = next(self._pieces)
        assert len(piece) <= most_bytes
        if self._limit_s is not None and wait_s > self._limit_s:
            raise TimeoutError
        self._clock.now_s += wait_s
        return piece


def received(clock: Clock, *pieces: tuple[float, bytes]) -> int:
    body = BodySocket(Client(clock, iter(pieces)))  # type: ignore[arg-type]
    return sum(len(body.recv(1 << 20)) for _ in pieces)


def test_a_body_over_a_slow_line_is_received(clock: Clock) -> None:
    """A line of 0.25 Mbit/s sends 31 KiB a second, here for ten minutes."""
    assert received(clock, *[(1.0, b"x" * 31_250)] * 600) == 18_750_000


def test_after_a_pause_of_some_seconds_the_body_is_still_read(clock: Clock) -> None:
    assert received(clock, (0.0, b"x" * 100), (8.0, b"x"), (8.0, b"x")) == 102


@pytest.mark.parametrize("pause_s", [0.01, 0.5, 1.0, 4.0, 11.0])
def test_a_body_that_comes_in_single_bytes_is_given_up(clock: Clock, pause_s: float) -> None:
    with pytest.raises(RequestError) as raised:
        received(clock, *[(pause_s, b"x")] * 20_000)
    assert raised.value.http_status == 408
    assert clock.now_s < 60


def test_a_client_that_was_fast_may_not_be_silent_for_longer(clock: Clock) -> None:
    with pytest.raises(RequestError):
        received(clock, *[(0.0, b"x" * (1 << 20))] * 200, (11.0, b"x"))


def test_a_limit_of_the_parser_stays_its_own() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        body = BodySocket(ours)
        body.settimeout(0.01)
        with pytest.raises(TimeoutError):
            body.recv(10)
        assert body.gettimeout() == 0.01
        body.settimeout(None)
        theirs.sendall(b"abc")
        assert body.recv(10) == b"abc"
        assert ours.gettimeout() is None
