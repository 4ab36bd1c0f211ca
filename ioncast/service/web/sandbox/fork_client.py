"""The client of a program that forks a process for each request and survives its crash."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

# The kernel closes all files of a process that ends, one after the other: its end of the socket
# may still be open for a moment after its end of a reply.
_END_IS_SEEN_MS = 100


@dataclass(frozen=True)
class SentRequest:
    """A request that was sent.

    Attributes
    ----------
    reply : file of bytes
        The answer; empty where the process that should write it ended before.
    """

    reply: IO[bytes]
    server: subprocess.Popen[bytes]
    socket: socket.socket

    def is_cut(self) -> bool:
        """Whether the server ended, not only the process that it forked for the request."""
        poll = select.poll()
        try:
            poll.register(self.socket, select.POLLHUP)
        except ValueError:
            # Another thread saw the end first and closed the socket.
            return True
        return bool(poll.poll(_END_IS_SEEN_MS))


class ForkServer:
    """Sends requests to a server, also from several threads; starts it when it is needed.

    A fork of this process gets a server of its own. The server ends when its socket is closed
    in all processes, so it cannot outlive them.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str | os.PathLike[str]]],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._environment = environment or {}
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = os.getpid()

    def ask(self, request: Mapping[str, object], *descriptors: int) -> SentRequest:
        """Send a request as a JSON object, with open files; the answer's file is the last one."""
        message = [json.dumps(request).encode()]
        read_end, write_end = os.pipe()
        try:
            with self._lock:
                server, connection = self._connection()
                try:
                    socket.send_fds(connection, message, [*descriptors, write_end])
                except (BrokenPipeError, ConnectionResetError):
                    self._disconnect()
                    server, connection = self._connection()
                    socket.send_fds(connection, message, [*descriptors, write_end])
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        return SentRequest(os.fdopen(read_end, "rb"), server, connection)

    def forget(self, server: subprocess.Popen[bytes]) -> None:
        """Send nothing more to a server that is ending; the next request starts another."""
        with self._lock:
            if self._server is server:
                self._disconnect()

    def close(self) -> None:
        """End the server and wait for its end; the next request starts another."""
        with self._lock:
            self._disconnect()

    def _connection(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._owner != os.getpid():
            self._disconnect()
            self._owner = os.getpid()
        if self._server is None or self._socket is None:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                descriptor = theirs.fileno()
                self._server = subprocess.Popen(  # noqa: S603 - our own interpreter and program
                    self._command(descriptor),
                    pass_fds=[descriptor],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=os.environ | self._environment,
                )
        return self._server, self._socket

    def _disconnect(self) -> None:
        if self._socket is not None and self._server is not None:
            if self._owner == os.getpid():
                # A fork of this process may hold the socket, too: closing it here is not enough.
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                self._server.wait()
            self._socket.close()
        self._server = self._socket = None
