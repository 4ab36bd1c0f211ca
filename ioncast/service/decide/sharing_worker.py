"""gunicorn's worker that shares its connections and threads among its peers.

Without it one user's questions could keep a scheduler's question waiting until its deadline.
"""

from __future__ import annotations

import socket
import struct
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from gunicorn.workers.gthread import TConn

from ioncast.service.running.worker import Worker

# SO_PEERCRED: process, user and group.
_CREDENTIALS = struct.Struct("3i")


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


class SharingWorker(Worker):
    """Answers peers in turn, and lets none have all threads or keep others from connecting.

    A peer is a local user on a unix socket, and an address on TCP.

    Attributes
    ----------
    unwanted_body_s : float
        A body that nobody wants is not read, so that no thread can wait for it.
    """

    unwanted_body_s = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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

    def hand_over(self, conn: Any, may_take_s: float) -> None:
        """Give a request with a whole head to a thread when it is its peer's turn."""
        conn.peer.waiting.append((conn, may_take_s))
        self._answer_in_turn(conn.peer)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Let another question have the thread."""
        conn.peer.answering -= 1
        self._answering -= 1
        super().finish_request(conn, fs)
        self._answer_in_turn(conn.peer)

    def make_room(self) -> bool:
        """Close a connection of the peer with the most: an idle one, else its newest question."""
        peer = max(self._peers.values(), key=lambda each: len(each.connections))
        if self.close_idle(peer.connections.__contains__):
            return True
        if not peer.waiting:
            return False
        conn, _ = peer.waiting.pop()
        self.nr_conns -= 1
        conn.close()
        if not peer.waiting:
            self._turns.pop(peer, None)
        return True

    def _answer_in_turn(self, changed: _Peer) -> None:
        """Fill the free threads with one question of each peer after the other."""
        self._line_up(changed)
        while self._turns and self._answering < self.cfg.threads:
            peer, _ = self._turns.popitem(last=False)
            peer.answering += 1
            self._answering += 1
            super().hand_over(*peer.waiting.popleft())
            self._line_up(peer)

    def _line_up(self, peer: _Peer) -> None:
        if peer.waiting and peer.answering < self._most_threads:
            self._turns.setdefault(peer)


def _name(client: socket.socket, address: Any) -> int | str:
    """Return the user's id or the address of a client."""
    if client.family != socket.AF_UNIX:
        return str(address[0])
    packed = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(packed)
    return int(user)
