"""Client for HTTP over a unix socket, which wrk cannot do; it prints JSON as `asking.lua` does.

    python benchmarks/asking.py SOCKET PATHS --seconds S --connections N [--close]

PATHS is a file with a path on each line. One process with threads limits the throughput that it
can measure, so its results only compare servers with one another.
"""

from __future__ import annotations

import argparse
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

LENGTH = b"\r\ncontent-length:"
OK = b"HTTP/1.1 200 "


def main() -> None:
    arguments = parse_arguments()
    requests = itertools.cycle(requests_of(arguments.paths, close=arguments.close))
    seconds: list[float] = []
    errors: list[str] = []
    start = time.perf_counter()
    end = start + arguments.seconds

    def ask_for_a_while() -> None:
        try:
            for took in asked(arguments.socket, requests, end, close=arguments.close):
                seconds.append(took)
        except (OSError, ValueError) as error:
            errors.append(str(error))

    threads = [threading.Thread(target=ask_for_a_while) for _ in range(arguments.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - start
    seconds.sort()
    print(
        json.dumps(
            {
                "requests": len(seconds),
                "seconds": whole,
                "p50_ms": 1000 * seconds[len(seconds) // 2],
                "p99_ms": 1000 * seconds[-1 - len(seconds) // 100],
                "errors": len(errors),
            }
        )
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask an HTTP server over a unix socket.")
    parser.add_argument("socket")
    parser.add_argument("paths", type=Path)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--close", action="store_true", help="a connection for each request")
    return parser.parse_args()


def requests_of(paths: Path, *, close: bool) -> list[bytes]:
    """The requests of a file of paths, as bytes."""
    header = "Host: localhost\r\n" + ("Connection: close\r\n" if close else "")
    lines = paths.read_text(encoding="utf-8").splitlines()
    return [f"GET {line} HTTP/1.1\r\n{header}\r\n".encode() for line in lines]


def asked(place: str, requests: Iterator[bytes], end: float, *, close: bool) -> Iterator[float]:
    """Ask until `end` and yield the seconds of each answer, including a new connection's."""
    connection = None
    while (start := time.perf_counter()) < end:
        if connection is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(place)
        connection.sendall(next(requests))
        answer = received(connection)
        if not answer.startswith(OK):
            raise ValueError(answer[:20].decode(errors="replace"))
        if close:
            connection.close()
            connection = None
        yield time.perf_counter() - start


def received(connection: socket.socket) -> bytes:
    answer = b""
    while True:
        head, blank, body = answer.partition(b"\r\n\r\n")
        if blank and len(body) >= length_of(head):
            return answer
        more = connection.recv(65536)
        if not more:
            raise ValueError("the server closed the connection")
        answer += more


def length_of(head: bytes) -> int:
    return int(head.lower().partition(LENGTH)[2].partition(b"\r\n")[0])


if __name__ == "__main__":
    main()
