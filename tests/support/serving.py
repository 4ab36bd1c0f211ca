"""A real service for tests: `ioncast serve` in processes of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.services import use

PATIENCE_S = 120.0
# Settings for busy machines, where the database and uploads may take long.
PATIENT = {"IONCAST_PATIENCE_S": "60", "IONCAST_UPLOAD_S": "600"}
# The service closes a connection on which no request arrives for so long.
_HEAD_S = 5.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.5
# Threads that ask without a pause would take the processors from the service that they ask.
_BETWEEN_QUESTIONS_S = 0.03
# Below the ports that the kernel gives to connections, so that no client takes one meanwhile.
_PORTS = range(20_000, 32_000)
_COMMAND = "import sys; sys.argv[0] = 'ioncast'; from ioncast.cli import main; main()"


@dataclass(frozen=True)
class Answer:
    """An answer of the service."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A running service: its addresses, its folder, and the process that keeps the others."""

    port: int
    socket: Path
    state: Path
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def decisions(self) -> Path:
        """The socket of the process that only answers decisions."""
        return self.socket.with_name("decisions.sock")

    def decide(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Answer:
        """Send one request to the process that only answers decisions, as `ask` does to others."""
        connection = OverSocket(self.decisions, timeout_s)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            found = connection.getresponse()
            return Answer(found.status, dict(found.getheaders()), found.read())

    def decider(self) -> int:
        """Wait until a process that only answers decisions runs, and return its id."""
        [found] = self.all_deciders(1)
        return found

    def all_deciders(self, count: int = 2) -> list[int]:
        """Wait until so many processes that only answer decisions run, and list them."""
        found = wait_for(
            lambda: len(self._deciders()) == count and self._deciders(), "processes for decisions"
        )
        return list(found)

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Answer:
        """Send one request over a connection of its own.

        On a busy machine the service may close the connection before the request is sent. Then
        try again.
        """
        while True:
            began = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
            try:
                with contextlib.closing(connection):
                    connection.request(method, path, body, headers or {})
                    found = connection.getresponse()
                    return Answer(found.status, dict(found.getheaders()), found.read())
            except ConnectionError:
                if time.monotonic() - began < _HEAD_S:
                    raise

    def web(self) -> int:
        """Wait until the process runs that answers all but decisions, and return its id."""
        [found] = wait_for(lambda: len(self._workers()) == 1 and self._workers(), "web process")
        return int(found)

    @contextmanager
    def alone(self, one: int) -> Iterator[None]:
        """Stop all processes for decisions but one of them for a while."""
        with self.stopped(each for each in self._deciders() if each != one):
            yield

    @contextmanager
    def stopped(self, pids: Iterable[int]) -> Iterator[None]:
        """Stop processes for a while, and the one that would replace them."""
        pids = [self.process.pid, *pids]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def wait_until_prepared(self, question: str) -> None:
        """Wait until each process that only answers decisions answers from the history."""
        for each in self.all_deciders():
            with self.alone(each):
                wait_for(
                    lambda: self.decide(question).json["source"] == "history", "prepared answers"
                )

    def keeper(self) -> int:
        """Wait until only one keeper is left, and return its id."""
        [keeper] = wait_for(lambda: len(self._keepers()) == 1 and self._keepers(), "one keeper")
        return int(keeper)

    def processes(self) -> list[int]:
        """List all processes of the service except the one that keeps them running."""
        return [
            *self._workers(),
            *self._kept("ioncast.service.web"),
            *self._keepers(),
            *self._deciders(),
        ]

    def _workers(self) -> list[int]:
        """List gunicorn's workers."""
        below = [each for web in self._kept("ioncast.service.web") for each in children_of(web)]
        return [pid for pid in below if "ioncast.service.web" in command_of(pid)]

    def _deciders(self) -> list[int]:
        return self._kept("ioncast.service.decide.server")

    def _keepers(self) -> list[int]:
        return self._kept("ioncast.service.background.process")

    def _kept(self, module: str) -> list[int]:
        below = children_of(self.process.pid)
        return [pid for pid in below if f" {module} " in command_of(pid)]

    def wait_until_ready(self) -> None:
        """Wait until the service has prepared answers and a keeper."""
        wait_for(lambda: self.ask("/readyz", timeout_s=2).json["keeper"] == "ok", "a ready service")


class OverSocket(http.client.HTTPConnection):
    """A connection over a unix socket."""

    def __init__(self, place: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._place = place

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._place))


def wait_for(condition: Any, what: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until a condition holds; a condition that fails does not hold yet."""
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < patience_s:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError):
            if found := condition():
                return found
        # A condition often asks a service or starts a program, which delays what it waits for.
        time.sleep(min(max(_SHORTEST_PAUSE_S, waited_s / 10), _LONGEST_PAUSE_S))
    raise AssertionError(f"no {what} within {patience_s} s")


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        texts = [(task / "children").read_text() for task in tasks]
        return [int(child) for text in texts for child in text.split()]
    return []


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    return ""


def free_port() -> int:
    """Find a free port that no other worker of the tests uses."""
    of_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 16
    while True:
        port = random.choice(_PORTS[of_worker::16])
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port


def start(
    folder: Path,
    *options: str,
    port: int | None = None,
    environment: dict[str, str] | None = None,
    under: Sequence[str] = (),
    names_decisions: bool = True,
) -> Served:
    """Start a service with its state, sockets and log in a folder; do not wait until it is ready.

    Parameters
    ----------
    folder : Path
        The folder.
    *options : str
        Options of `ioncast serve`.
    port : int, optional
        The port; by default a free one.
    environment : dict of str to str, optional
        Variables beside those of the tests.
    under : sequence of str
        A command such as `prlimit`, which becomes the service after it changed its circumstances.
    names_decisions : bool
        Whether the socket for decisions is in the folder; otherwise the service chooses its place.
    """
    use("serving")
    port = port or free_port()
    place = folder / "ioncast.sock"
    command = [*under, sys.executable, "-c", _COMMAND]
    command += ["serve", "--state", str(folder / "state")]
    command += ["--bind", f"127.0.0.1:{port}", "--bind", f"unix:{place}", *options]
    if names_decisions:
        command += ["--decisions-bind", f"unix:{folder / 'decisions.sock'}"]
    log = folder / "serve.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
        )
    return Served(port, place, folder / "state", process, log)


@contextmanager
def running(folder: Path, *options: str, **told: Any) -> Iterator[Served]:
    """Start a service, wait until it is ready, and end it afterwards."""
    service = start(folder, *options, **told)
    try:
        service.wait_until_ready()
        yield service
    except AssertionError:
        sys.stderr.write(service.log.read_text(errors="replace")[-4000:])
        raise
    finally:
        stop(service)


def stop(service: Served) -> None:
    """End a service and wait for its end."""
    service.process.send_signal(signal.SIGTERM)
    try:
        service.process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        service.process.kill()
        service.process.wait()


class Asking:
    """Threads that ask for decisions all the time, each over connections of its own.

    Parameters
    ----------
    ask : callable
        Sends a question: a `Served`'s `ask` or `decide`.
    question : str
        The question's address.

    Attributes
    ----------
    numbers : list of str
        The ids of all decisions.
    counts : set of int or None
        The numbers of I/O nodes of all decisions.
    unprepared : list of str
        The reasons of decisions that do not rest on the history.
    refused : list of str
        Failures instead of decisions.
    """

    def __init__(self, ask: Callable[[str], Answer], question: str, threads: int = 4) -> None:
        self.ask = ask
        self.question = question
        self.numbers: list[str] = []
        self.counts: set[int | None] = set()
        self.unprepared: list[str] = []
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(threads)]

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_until_answered(self) -> None:
        """Wait for another answer."""
        known = len(self.numbers)
        wait_for(lambda: len(self.numbers) > known, "decision")

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                answer = self.ask(self.question)
                assert answer.status == 200
                told = answer.json
                self.counts.add(told["io_nodes"])
                self.numbers.append(told["decision_id"])
                if told["source"] != "history":
                    self.unprepared.append(told["why"])
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.refused.append(repr(error))
            time.sleep(_BETWEEN_QUESTIONS_S)


@contextmanager
def asked_meanwhile(served: Served, question: str) -> Iterator[Asking]:
    """Ask at the socket for decisions all the time; no answer differs from the first one.

    Yields
    ------
    Asking
        The threads that ask; they have got an answer before and get another one at the end.
    """
    expected = served.decide(question).json
    with Asking(served.decide, question, threads=2) as asked:
        asked.wait_until_answered()
        yield asked
        asked.wait_until_answered()
    assert not asked.refused, asked.refused
    assert asked.counts == {expected["io_nodes"]}
    if expected["source"] == "history":
        assert not asked.unprepared, asked.unprepared
