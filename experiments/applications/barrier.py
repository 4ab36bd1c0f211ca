"""Where processes that have nothing in common but a file system wait for one another."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def barrier(path: Path, tasks: int) -> Iterator[None]:
    """Serve a socket at which `tasks` processes meet, as often as they like.

    Each connects once, and at every meeting sends one byte and gets one when all have come.
    When one hangs up, all others are hung up on: nobody waits for the dead. Sockets with a
    path are found across network namespaces.

    Parameters
    ----------
    path : Path
        Of the socket. Only the name of its file has to be short, for who connects from its
        folder: addresses are at most 107 bytes long.
    tasks : int
        How many processes.
    """
    peers: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        _bind(listener, path)
        listener.listen(tasks)
        server = threading.Thread(target=_serve, args=(listener, tasks, peers), daemon=True)
        server.start()
        try:
            yield
        finally:
            # Wakes the server where it still waits for processes that never came.
            listener.shutdown(socket.SHUT_RDWR)
            for peer in list(peers):
                # Or for one that cannot even be killed, since the file system does not answer.
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
            server.join()


def _bind(listener: socket.socket, path: Path) -> None:
    """Bind a socket to a path of any length."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _serve(listener: socket.socket, tasks: int, peers: list[socket.socket]) -> None:
    # What fails here fails because a process is gone, and its exit code tells why.
    with ExitStack() as connections, contextlib.suppress(OSError):
        while len(peers) < tasks:
            peers.append(connections.enter_context(listener.accept()[0]))
        while all(peer.recv(1) for peer in peers):
            for peer in peers:
                peer.sendall(b".")
