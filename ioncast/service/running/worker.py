"""gunicorn's worker with threads, whose threads and whose loop wait for no client.

As gunicorn has it, a thread waits for a request that does not come, or comes in drops, and the
loop that hands requests to threads waits until a client has closed the connection that ended
with its answer. A few clients, slow or hostile, would keep schedulers waiting so.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from selectors import EVENT_READ
from typing import Any

from flask import Response
from gunicorn.http.errors import LimitRequestHeaders, ParseException
from gunicorn.util import http_date
from gunicorn.workers.gthread import TConn, ThreadWorker

from ioncast.service.api import problems
from ioncast.service.running import security_headers

_END_OF_HEAD = b"\r\n\r\n"
_MOST_HEAD_BYTES = 64 << 10
_CHUNK_BYTES = 64 << 10
_HEAD_S = 5.0
# How long the last bytes of an answer may need before the connection is closed for good.
_LINGER_S = 2.0
# How long a request without a body may take; what comes with one has gunicorn's `timeout`.
_ANSWER_S = 30.0
# A body that nobody wanted is passed over if it is here; the connection is closed if it is not.
_UNWANTED_BODY_S = 0.1


@dataclass(eq=False)
class _Waiting:
    """A connection that the loop looks after: until when, and what came of its next request."""

    until: float
    head: bytes = b""
    is_polled: bool = False


class Worker(ThreadWorker):
    """Reads the head of each request in its loop; a thread gets it when it is there as a whole."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._coming: dict[TConn, _Waiting] = {}
        self._going: dict[TConn, _Waiting] = {}
        self._working_until: dict[TConn, float] = {}

    def enqueue_req(self, conn: TConn) -> None:
        """Have the next request of a connection handled, when its head is here."""
        conn.init()
        conn.sock.setblocking(False)
        begun = _parser(conn).unreader.take_buffered()
        self._coming[conn] = _Waiting(time.monotonic() + _HEAD_S, begun)
        self._read_head(conn, conn.sock)

    def finish_request(self, conn: TConn, fs: Any) -> None:
        """Wait for another request, or for the end of the connection; both in the loop."""
        self._working_until.pop(conn, None)
        if not fs.cancelled() and fs.exception() is None and fs.result():
            super().finish_request(conn, fs)
            return
        self._hang_up(conn)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what never gets to the application, or cannot be sent, as it answers errors."""
        if req is None and isinstance(exc, ParseException):
            response = problems.of_exception(exc)
        else:
            response = problems.of_defect(exc)
        with suppress(OSError):
            client.sendall(_as_sent(response))

    def murder_pending(self) -> None:
        """End what takes too long; the loop calls it each second."""
        super().murder_pending()
        now = time.monotonic()
        for conn, waiting in [*self._coming.items(), *self._going.items()]:
            is_idle = conn in self._coming and not waiting.head
            if waiting.until < now or (is_idle and not self.alive):
                self._drop(conn)
        for conn, until in list(self._working_until.items()):
            if until < now:
                # Its thread finds the connection closed.
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def _read_head(self, conn: TConn, sock: socket.socket) -> None:
        waiting = self._coming[conn]
        received = _received(sock)
        # Empty lines before a request are none of it.
        waiting.head = (waiting.head + (received or b"")).lstrip(b"\r\n")
        if _END_OF_HEAD not in waiting.head:
            if received == b"":
                self._drop(conn)
            elif len(waiting.head) > _MOST_HEAD_BYTES:
                self._forget(conn)
                self.handle_error(None, conn.sock, conn.client, LimitRequestHeaders("too long"))
                self._hang_up(conn)
            else:
                self._poll(conn, waiting, self._read_head)
        else:
            self._forget(conn)
            may_take_s = self.cfg.timeout if waiting.head.startswith(b"POST ") else _ANSWER_S
            self._working_until[conn] = time.monotonic() + may_take_s
            _parser(conn).unreader.unread(waiting.head)
            super().enqueue_req(conn)

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        until = time.monotonic() + _UNWANTED_BODY_S
        try:
            return keepalive and bool(_parser(conn).finish_body(deadline=until))
        except ParseException:
            # The request has its answer.
            return False

    def _hang_up(self, conn: TConn) -> None:
        """Close a connection when the client has read its answer."""
        with suppress(OSError):
            conn.sock.shutdown(socket.SHUT_WR)
        conn.sock.setblocking(False)
        self._going[conn] = _Waiting(time.monotonic() + _LINGER_S)
        self._poll(conn, self._going[conn], self._drain)

    def _drain(self, conn: TConn, sock: socket.socket) -> None:
        if _received(sock) == b"":
            self._drop(conn)

    def _poll(self, conn: TConn, waiting: _Waiting, read: Any) -> None:
        if not waiting.is_polled:
            self.poller.register(conn.sock, EVENT_READ, partial(read, conn))
            waiting.is_polled = True

    def _forget(self, conn: TConn) -> None:
        waiting = self._coming.pop(conn, None) or self._going.pop(conn)
        if waiting.is_polled:
            self.poller.unregister(conn.sock)

    def _drop(self, conn: TConn) -> None:
        self._forget(conn)
        self.nr_conns -= 1
        conn.close()


def _parser(conn: TConn) -> Any:
    """That of HTTP/1.1, which is all that is spoken here; `TConn.init` makes it."""
    return conn.parser


def _as_sent(response: Response) -> bytes:
    """An answer as bytes, with what the application and gunicorn would add."""
    response.headers.update(security_headers.FOR_PEOPLE)
    response.headers.update(security_headers.FOR_PROGRAMS)
    response.headers.update({"Date": http_date(), "Connection": "close"})
    lines = [
        f"HTTP/1.1 {response.status}",
        *(f"{name}: {value}" for name, value in response.headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + response.get_data()


def _received(sock: socket.socket) -> bytes | None:
    """What has come; None for nothing yet, and nothing where nothing will."""
    try:
        return sock.recv(_CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
