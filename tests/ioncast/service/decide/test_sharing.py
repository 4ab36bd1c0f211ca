"""Users or addresses that ask all the time keep no other one from its decisions.

The attacks come from a real other user, or over TCP from another address, and the service answers
with one process.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.support import attacking
from tests.support.serving import (
    PATIENCE_S,
    Answer,
    Asking,
    Served,
    free_port,
    start,
    stop,
    wait_for,
)
from tests.support.slurm import as_user, open_to_all

pytestmark = [pytest.mark.serving, pytest.mark.root]

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
QUESTION = f"GET {HACC} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
THREADS = 4
# With this limit of open files the process keeps less than 200 connections.
FEW_FILES = 256
# The attackers take both processors while these are answered.
QUESTIONS = 10

_HEAD = re.compile(rb"HTTP/1.1 (\d+) .*?\r\nContent-Length: (\d+)\r\n.*?\r\n\r\n", re.DOTALL)
Connect = Callable[[], socket.socket]


@dataclass(frozen=True)
class Place:
    """A service, and connections to it of two users or from two addresses."""

    served: Served
    name: str
    attacker: Connect
    scheduler: Connect

    def ask(self, _path: str = HACC) -> Answer:
        """Ask once as the scheduler."""
        with contextlib.closing(self.scheduler()) as client:
            client.sendall(QUESTION)
            return answers_in(client, 1)[0]


def answers_in(client: socket.socket, count: int) -> list[Answer]:
    """Receive so many answers."""
    received, found = b"", []
    while len(found) < count:
        part = client.recv(1 << 16)
        if not part:
            raise ConnectionResetError(f"{len(found)} of {count} answers")
        received += part
        while whole := _HEAD.match(received):
            end = whole.end() + int(whole[2])
            if len(received) < end:
                break
            found.append(Answer(int(whole[1]), {}, received[whole.end() : end]))
            received = received[end:]
    return found


@contextlib.contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Act as another user."""
    os.seteuid(pwd.getpwnam(name).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


def over_socket(path: Path, user: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    # The user is that of all threads, so only one that runs alone may be another one than root.
    with acting_as(user) if user != "root" else contextlib.nullcontext():
        client.connect(str(path))
    client.settimeout(PATIENCE_S)
    return client


def over_tcp(port: int, address: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
    client.settimeout(PATIENCE_S)
    return client


@contextlib.contextmanager
def places(folder: Path, database: Path, *under: str) -> Iterator[dict[str, Place]]:
    """Start a service where every user may ask for decisions."""
    open_to_all(folder)
    shutil.copy(database, folder / "bench.sqlite")
    port = free_port()
    options = ["--db", str(folder / "bench.sqlite"), "--workers", "1", "--threads", str(THREADS)]
    options += ["--decisions-bind", f"127.0.0.1:{port}"]
    environment = {"IONCAST_DECISIONS_GROUP": "no-such-group"}
    served = start(folder, *options, under=under, environment=environment)
    try:
        wait_for(lambda: served.decide(HACC).json["source"] == "history", "prepared answers")
        by_user = partial(over_socket, served.decisions)
        by_address = partial(over_tcp, port)
        yield {
            "users": Place(
                served, str(served.decisions), partial(by_user, "nobody"), partial(by_user, "root")
            ),
            "addresses": Place(
                served,
                str(port),
                partial(by_address, "127.0.0.1"),
                partial(by_address, "127.0.0.2"),
            ),
        }
        sys.stderr.write(served.log.read_text(errors="replace")[-4000:])
    finally:
        stop(served)


@pytest.fixture(scope="module")
def each_place(
    tmp_path_factory: pytest.TempPathFactory, demo_on_sqlite: Path
) -> Iterator[dict[str, Place]]:
    with places(tmp_path_factory.mktemp("sharing"), demo_on_sqlite) as found:
        yield found


@pytest.fixture(params=["users", "addresses"])
def place(request: pytest.FixtureRequest, each_place: dict[str, Place]) -> Place:
    return each_place[request.param]


@contextlib.contextmanager
def clients(connect: Connect, count: int) -> Iterator[list[socket.socket]]:
    """Connect so many clients, which have got an answer each."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(contextlib.closing(connect())) for _ in range(count)]
        for client in found:
            client.sendall(QUESTION)
        for client in found:
            answers_in(client, 1)
        yield found


@pytest.mark.promise("service-greedy-peer")
@pytest.mark.parametrize(
    ("connections", "questions"), [(200, 40), (256, 1)], ids=["pipelined", "kept alive"]
)
def test_a_question_is_not_behind_those_that_another_one_sent_before(
    place: Place, connections: int, questions: int
) -> None:
    # The service closes idle connections, so a busy machine may need a second attempt.
    mine, others = wait_for(lambda: decided(place, connections, questions), "all answers")
    # An id begins with the time of the decision.
    earlier = sum(other < mine for other in others)
    # In the order of sending, each of the connections had an answer before.
    assert earlier < connections // 2


def decided(place: Place, connections: int, questions: int) -> tuple[str, list[str]]:
    """Ask after all questions of others; return the id of the decision, and those of others."""
    with (
        clients(place.attacker, connections) as attackers,
        clients(place.scheduler, 1) as [scheduler],
    ):
        with place.served.stopped([place.served.decider()]):
            for attacker in attackers:
                attacker.sendall(QUESTION * questions)
            scheduler.sendall(QUESTION)
        [answer] = answers_in(scheduler, 1)
        others = [each for attacker in attackers for each in answers_in(attacker, questions)]
    assert {each.status for each in (answer, *others)} == {200}
    return answer.json["decision_id"], [each.json["decision_id"] for each in others]


@contextlib.contextmanager
def attack(place: Place, *numbers: str) -> Iterator[None]:
    """Let another user ask all the time, as `attacking` does."""
    command = [*as_user("nobody"), sys.executable, attacking.__file__, place.name, *numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == b"attacking\n"
            yield
            assert program.poll() is None
        finally:
            program.kill()


def assert_all_are_answered(place: Place) -> None:
    decider = place.served.decider()
    with Asking(place.ask, HACC, threads=2) as asked:
        for _ in range(QUESTIONS):
            asked.wait_until_answered()
    assert not asked.refused, asked.refused
    assert not asked.unprepared, asked.unprepared
    assert place.served.decider() == decider


@pytest.mark.promise("service-greedy-peer")
@pytest.mark.parametrize("numbers", [("200", "40"), ("256", "1")], ids=["pipelined", "kept alive"])
def test_others_who_ask_all_the_time_keep_nobody_from_an_answer(
    place: Place, numbers: tuple[str, str]
) -> None:
    with attack(place, *numbers):
        assert_all_are_answered(place)


@pytest.mark.promise("service-greedy-peer")
def test_others_who_read_no_answers_keep_nobody_from_one(each_place: dict[str, Place]) -> None:
    place = each_place["users"]

    def is_answered_meanwhile() -> bool:
        with clients(place.attacker, 2 * THREADS) as attackers:
            for attacker in attackers:
                # The service reads no more questions as soon as a thread waits for the client.
                while select.select([], [attacker], [], 0.5)[1]:
                    attacker.send(QUESTION)
            assert_all_are_answered(place)
            return not any(map(is_hung_up, attackers))

    # After half a minute the service hangs up. A busy machine may be so slow once, but answers that
    # wait for it always are.
    wait_for(is_answered_meanwhile, "answers while others read none")


def is_hung_up(client: socket.socket) -> bool:
    poll = select.poll()
    poll.register(client, select.POLLRDHUP)
    return bool(poll.poll(0))


@pytest.mark.promise("service-greedy-peer")
def test_more_busy_clients_than_there_are_connections_keep_nobody_from_an_answer(
    tmp_path: Path, demo_on_sqlite: Path
) -> None:
    with (
        places(tmp_path, demo_on_sqlite, "prlimit", f"--nofile={FEW_FILES}") as found,
        attack(found["users"], str(FEW_FILES), "1"),
    ):
        assert_all_are_answered(found["users"])
