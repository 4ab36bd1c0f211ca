"""gunicorn's worker with threads, changed so that no client keeps others from an answer.

In gunicorn's own worker a thread waits for a request that comes slowly or never, the loop that
gives requests to threads waits until the client closes a connection after its last answer, and one
user's questions could keep a scheduler's question waiting until its deadline.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from selectors import EVENT_READ
from typing import Any
from weakref import WeakValueDictionary

from gunicorn.http.errors import LimitRequestHeaders, ParseException
from gunicorn.util import http_date
from gunicorn.workers.gthread import TConn, ThreadWorker
from werkzeug.wrappers import Response

from ioncast.service.web.http.problems import of_defect, of_exception
from ioncast.service.web.security_headers import FOR_PROGRAMS
from ioncast_base.files import memory_folder

_END_OF_HEAD = b"\r\n\r\n"
_MOST_HEAD_BYTES = 64 << 10
_CHUNK_BYTES = 64 << 10
_HEAD_S = 5.0
# How long a client may take to read the last bytes of an answer before its connection is closed.
_LINGER_S = 2.0
# How long a request without a body may take; a request with a body has gunicorn's `timeout`.
_ANSWER_S = 30.0
# SO_PEERCRED: process, user and group.
_CREDENTIALS = struct.Struct("3i")
# Settings of gunicorn for all its processes in this service. The setting `proxies` decides on
# X-Forwarded headers, and no header may set a path.
OPTIONS: dict[str, Any] = {
    "keepalive": 5,
    "limit_request_line": 8190,
    "forwarded_allow_ips": "",
    "forwarder_headers": "",
    "secure_scheme_headers": {},
    "loglevel": "warning",
    # A full disk must not keep a process from starting: by default its file is in TMPDIR.
    "worker_tmp_dir": memory_folder(),
}


@dataclass(eq=False)
class _Waiting:
    """A connection that the loop waits for: its time limit, and the head that arrived so far."""

    until: float
    head: bytes = b""
    is_polled: bool = False


@dataclass(eq=False)
class _Peer:
    """A local user or an address, as long as it has a connection."""

    connections: set[TConn] = field(default_factory=set)
    # Connections whose question waits for a thread, and how long that may take.
    waiting: deque[tuple[TConn, float]] = field(default_factory=deque)
    # The number of questions that threads answer.
    answering: int = 0


class _Connection(TConn):
    """A connection that counts for its peer until it is closed."""

    def __init__(self, peer: _Peer, *args: Any) -> None:
        super().__init__(*args)
        self.peer = peer
        peer.connections.add(self)

    def close(self, graceful: bool = False) -> None:
        """Close the connection."""
        self.peer.connections.discard(self)
        super().close(graceful)


class SharingWorker(ThreadWorker):
    """Answers peers in turn, and lets none have all threads or keep others from connecting.

    A peer is a local user on a unix socket, and an address on TCP. The loop reads the head of each
    request; a thread gets a request with a whole head when it is its peer's turn.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._coming: dict[TConn, _Waiting] = {}
        self._going: dict[TConn, _Waiting] = {}
        self._working_until: dict[TConn, float] = {}
        self._next_look_s = 0.0
        # A thread may wait for a client that reads no answer. More threads do not answer faster.
        self._most_threads = self.cfg.threads // 2
        self._peers: WeakValueDictionary[int | str, _Peer] = WeakValueDictionary()
        # Peers with a question that a thread may answer, the next one first.
        self._turns: OrderedDict[_Peer, None] = OrderedDict()
        self._answering = 0

    def notify(self) -> None:
        """Give no sign of life, which costs a system call for each event: nobody looks at it."""

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection of a peer."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        peer = self._peers.setdefault(_name(client, address), _Peer())
        self.enqueue_req(_Connection(peer, self.cfg, client, address, listener.getsockname()))

    def enqueue_req(self, conn: TConn) -> None:
        """Wait for the head of a connection's next request."""
        conn.init()
        conn.sock.setblocking(False)
        begun = _parser(conn).unreader.take_buffered()
        self._coming[conn] = _Waiting(time.monotonic() + _HEAD_S, begun)
        self._read_head(conn, conn.sock)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Wait for the next request or the end of the connection; another one has the thread."""
        conn.peer.answering -= 1
        self._answering -= 1
        self._working_until.pop(conn, None)
        if not fs.cancelled() and fs.exception() is None and fs.result():
            super().finish_request(conn, fs)
        else:
            self._hang_up(conn)
        self._answer_in_turn(conn.peer)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer requests that do not reach the application with a problem document."""
        if req is None and isinstance(exc, ParseException):
            response = of_exception(exc)
        else:
            response = of_defect(exc)
        with suppress(OSError):
            client.sendall(_as_sent(response))

    def murder_pending(self) -> None:
        """End connections that take too long, and those without a place; called after all events.

        Connections are closed here, because an event of theirs may still be to come elsewhere.
        """
        # Each listener may accept a connection before the next call.
        most = max(self.worker_connections - len(self.sockets), 1)
        while self.nr_conns > most and self._make_room():
            pass
        now = time.monotonic()
        if now < self._next_look_s:
            return
        self._next_look_s = now + 1
        super().murder_pending()
        for conn, waiting in [*self._coming.items(), *self._going.items()]:
            is_idle = conn in self._coming and not waiting.head
            if waiting.until < now or (is_idle and not self.alive):
                self._drop(conn)
        for conn, until in list(self._working_until.items()):
            if until < now:
                # The thread that answers then finds the connection closed.
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def _read_head(self, conn: TConn, sock: socket.socket) -> None:
        waiting = self._coming[conn]
        received = _received(sock)
        # Empty lines before a request do not belong to it.
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
            _parser(conn).unreader.unread(waiting.head)
            is_post = waiting.head.startswith(b"POST ")
            self._hand_over(conn, self.cfg.timeout if is_post else _ANSWER_S)

    def _hand_over(self, conn: Any, may_take_s: float) -> None:
        """Give a request with a whole head to a thread when it is its peer's turn."""
        conn.peer.waiting.append((conn, may_take_s))
        self._answer_in_turn(conn.peer)

    def _answer_in_turn(self, changed: _Peer) -> None:
        """Fill the free threads with one question of each peer after the other."""
        self._line_up(changed)
        while self._turns and self._answering < self.cfg.threads:
            peer, _ = self._turns.popitem(last=False)
            peer.answering += 1
            self._answering += 1
            conn, may_take_s = peer.waiting.popleft()
            self._working_until[conn] = time.monotonic() + may_take_s
            super().enqueue_req(conn)
            self._line_up(peer)

    def _line_up(self, peer: _Peer) -> None:
        if peer.waiting and peer.answering < self._most_threads:
            self._turns.setdefault(peer)

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        body = _parser(conn).mesg.body
        if not body.failed and getattr(body.reader, "length", None) == 0:
            return keepalive
        try:
            # A body that nobody wanted is not waited for.
            return keepalive and bool(_parser(conn).finish_body(deadline=time.monotonic()))
        except ParseException:
            # The request is already answered, so only the connection ends.
            return False

    def _hang_up(self, conn: TConn) -> None:
        """Close a connection after the client has read its answer, at the latest in `_LINGER_S`."""
        with suppress(OSError):
            conn.sock.shutdown(socket.SHUT_WR)
        conn.sock.setblocking(False)
        self._going[conn] = _Waiting(time.monotonic() + _LINGER_S)
        self._poll(conn, self._going[conn], self._drain)

    def _drain(self, conn: TConn, sock: socket.socket) -> None:
        if _received(sock) == b"":
            self._drop(conn)

    def _make_room(self) -> bool:
        """Close a connection of the peer with the most: an idle one, else its newest question."""
        peer = max(self._peers.values(), key=lambda each: len(each.connections))
        if self._close_idle(peer.connections):
            return True
        if not peer.waiting:
            return False
        conn, _ = peer.waiting.pop()
        self.nr_conns -= 1
        conn.close()
        if not peer.waiting:
            self._turns.pop(peer, None)
        return True

    def _close_idle(self, of: set[TConn]) -> bool:
        """Close the connection that has waited longest for its client; False if none waits."""
        waited: list[tuple[float, Callable[[], None]]] = []
        for waiting, may_wait_s in ((self._coming, _HEAD_S), (self._going, _LINGER_S)):
            for conn in islice(filter(of.__contains__, waiting), 1):
                waited.append((waiting[conn].until - may_wait_s, partial(self._drop, conn)))
        for conn in islice(filter(of.__contains__, self.keepalived_conns), 1):
            waited.append((conn.timeout - self.cfg.keepalive, partial(self._drop_kept, conn)))
        if waited:
            _, close = min(waited, key=itemgetter(0))
            close()
        return bool(waited)

    def _drop_kept(self, conn: TConn) -> None:
        self.keepalived_conns.remove(conn)
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

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


def _name(client: socket.socket, address: Any) -> int | str:
    """Return the user's id or the address of a client."""
    if client.family != socket.AF_UNIX:
        return str(address[0])
    packed = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(packed)
    return int(user)


def _parser(conn: TConn) -> Any:
    """Return the connection's parser of HTTP/1.1, which `TConn.init` makes."""
    return conn.parser


def _as_sent(response: Response) -> bytes:
    """Write an answer as bytes, with the headers that the application and gunicorn would add."""
    response.headers.update(FOR_PROGRAMS)
    response.headers.update({"Date": http_date(), "Connection": "close"})
    lines = [
        f"HTTP/1.1 {response.status}",
        *(f"{name}: {value}" for name, value in response.headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + response.get_data()


def _received(sock: socket.socket) -> bytes | None:
    """Read the bytes that arrived; None if none did yet, empty if none will."""
    try:
        return sock.recv(_CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
