"""A server in place of the service, which behaves as badly as a test wants."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DECISION_ID = "04a94459990f44be8a32fd781700b04e"
WHY = "3 earlier runs of the same program and user"
_PAUSE_S = 0.01
# Much longer than a busy machine can delay a program that must not wait for the answer.
_SLOW_S = 60.0


def response(body: str, status: str = "200 OK", **headers: str) -> bytes:
    """The response of a working service."""
    lines = [
        f"HTTP/1.0 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        f"X-Decision-Id: {DECISION_ID}",
        "X-Decision-Source: history",
        f"X-Decision-Why: {WHY}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@dataclass
class StandIn:
    """The server's behaviour, and the requests to it.

    Attributes
    ----------
    address : str
        Its address in the form of the settings: ``unix:/path`` or ``127.0.0.1:port``.
    behaviour : str
        One of `BEHAVIOURS`.
    io_nodes : int
        The number in its answers.
    requests : list of bytes
        All requests so far.
    """

    address: str
    behaviour: str = "up"
    io_nodes: int = 4
    requests: list[bytes] = field(default_factory=list)

    def answer(self, client: socket.socket) -> None:
        """Serve one connection until the client closes it."""
        with contextlib.suppress(OSError), client:
            client.settimeout(30)
            self.requests.append(_request(client))
            BEHAVIOURS[self.behaviour](client, response(str(self.io_nodes)))


def _request(client: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        part = client.recv(1 << 16)
        if not part:
            return got
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if b"Content-Length" in line]
    while lengths and len(body) < int(lengths[0]):
        body += client.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def _up(client: socket.socket, answer: bytes) -> None:
    client.sendall(answer)


def _hung(client: socket.socket, _answer: bytes) -> None:
    client.recv(1)


def _slow(client: socket.socket, answer: bytes) -> None:
    time.sleep(_SLOW_S)
    client.sendall(answer)


def _trickle(client: socket.socket, answer: bytes) -> None:
    head = answer.partition(b"\r\n\r\n")[0]
    for byte in itertools.chain(head + b"\r\nX-Long: ", itertools.repeat(ord("x"))):
        client.sendall(bytes([byte]))
        time.sleep(_PAUSE_S)


def _trickle_body(client: socket.socket, answer: bytes) -> None:
    head = answer.partition(b"\r\n\r\n")[0].replace(b"Content-Length: 1", b"Content-Length: 9999")
    client.sendall(head + b"\r\n\r\n")
    while True:
        client.sendall(b"4")
        time.sleep(_PAUSE_S)


def _garbage(client: socket.socket, _answer: bytes) -> None:
    while True:
        client.sendall(os.urandom(1 << 12))


def _endless_headers(client: socket.socket, _answer: bytes) -> None:
    client.sendall(b"HTTP/1.0 200 OK\r\n")
    while True:
        client.sendall(b"X-More: and more\r\n" * 100)


def _close(client: socket.socket, _answer: bytes) -> None:
    client.shutdown(socket.SHUT_RDWR)


def _cut_off(client: socket.socket, answer: bytes) -> None:
    client.sendall(answer.replace(b"Content-Length: 1", b"Content-Length: 2"))


def _fail(client: socket.socket, _answer: bytes) -> None:
    client.sendall(response("what", "500 Internal Server Error"))


BEHAVIOURS: dict[str, Callable[[socket.socket, bytes], None]] = {
    "up": _up,
    "hung": _hung,
    "slow": _slow,
    "trickling": _trickle,
    "trickling body": _trickle_body,
    "garbage": _garbage,
    "endless headers": _endless_headers,
    "closing": _close,
    "cut off": _cut_off,
    "500": _fail,
}


@contextmanager
def stand_in(place: Path | None = None, host: str = "127.0.0.1") -> Iterator[StandIn]:
    """Run a stand-in on a unix socket, or on a free port."""
    if place is not None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(place))
        # slurmctld runs as another user.
        place.chmod(0o777)
        address = f"unix:{place}"
    else:
        listening = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        shown = f"[{host}]" if ":" in host else host
        address = f"{shown}:{listening.getsockname()[1]}"
    listening.listen(128)
    found = StandIn(address)
    accepting = threading.Thread(target=_accept, args=(listening, found), daemon=True)
    accepting.start()
    try:
        yield found
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()


def _accept(listening: socket.socket, stand_in: StandIn) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            threading.Thread(target=stand_in.answer, args=(client,), daemon=True).start()
