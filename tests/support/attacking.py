"""A program that asks for decisions all the time.

    python attacking.py SOCKET|PORT CONNECTIONS QUESTIONS

Each connection has so many questions at the same time; a connection that the service closes is
replaced at once.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys

QUESTION = b"GET /v1/decisions?system=testbed HTTP/1.1\r\nHost: x\r\n\r\n"


def connected(place: str) -> socket.socket:
    """Connect to a unix socket, or to a port of this machine."""
    if place.isdecimal():
        return socket.create_connection(("127.0.0.1", int(place)))
    client = socket.socket(socket.AF_UNIX)
    client.connect(place)
    return client


def main() -> None:
    """Ask until the process is killed."""
    place, connections, questions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    poll = select.poll()
    clients: dict[int, socket.socket] = {}

    def begin() -> None:
        client = connected(place)
        client.setblocking(False)
        clients[client.fileno()] = client
        poll.register(client, select.POLLIN)
        with contextlib.suppress(OSError):
            client.send(QUESTION * questions)

    for _ in range(connections):
        begin()
    print("attacking", flush=True)
    while True:
        for descriptor, _ in poll.poll():
            client = clients[descriptor]
            try:
                answers = client.recv(1 << 20).count(b"HTTP/1.1 ")
                client.send(QUESTION * answers)
            except OSError:
                answers = 0
            if not answers:
                poll.unregister(descriptor)
                clients.pop(descriptor).close()
                begin()


if __name__ == "__main__":
    main()
