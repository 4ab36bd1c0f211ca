"""A barrier at which processes in different network namespaces wait for each other."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def barrier(path: Path, tasks: int, start: threading.Barrier | None = None) -> Iterator[None]:
    """Serve a socket at which `tasks` processes meet any number of times.

    Each process connects once. At every meeting it sends one byte, and gets one byte back when
    all have sent theirs. When a process hangs up, the barrier hangs up on all others, so that
    they do not wait for a dead one. Processes find a socket with a path from every network
    namespace.

    Parameters
    ----------
    path : Path
        Path of the socket. An address is at most 107 bytes long; under a longer path, processes
        connect from the socket's folder by its name alone.
    tasks : int
        Number of processes.
    start : threading.Barrier, optional
        A barrier for the first meeting with other programs' processes. The end breaks it, so that
        they do not wait for a program that has ended.
    """
    peers: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        _bind(listener, path)
        listener.listen(tasks)
        server = threading.Thread(target=_serve, args=(listener, tasks, peers, start), daemon=True)
        server.start()
        try:
            yield
        finally:
            # Wake the server if it still waits for processes or programs that never came.
            if start is not None:
                start.abort()
            listener.shutdown(socket.SHUT_RDWR)
            for peer in list(peers):
                # Also if it waits for a process that cannot be killed, because the file system
                # does not answer.
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
            server.join()


def _bind(listener: socket.socket, path: Path) -> None:
    """Bind a socket to a path of any length, through a short path to its folder."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _serve(
    listener: socket.socket,
    tasks: int,
    peers: list[socket.socket],
    start: threading.Barrier | None,
) -> None:
    # An error here means that a process is gone; its exit code tells why.
    with ExitStack() as connections, contextlib.suppress(OSError, threading.BrokenBarrierError):
        while len(peers) < tasks:
            peers.append(connections.enter_context(listener.accept()[0]))
        while all(peer.recv(1) for peer in peers):
            if start is not None:
                start.wait()
                start = None
            for peer in peers:
                peer.sendall(b".")
