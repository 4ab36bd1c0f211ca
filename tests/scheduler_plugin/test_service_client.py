"""The client of ioncast's service, with a real service and with servers that only look like it."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchdb.measurements.storing import insert_import
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import system_id_of
from ioncast.service.store.tokens import add_token
from scheduler_plugin.service_client import (
    Ioncast,
    NamedLog,
    RunOf,
    ServiceRefusedError,
    ServiceUnreachableError,
)
from tests.support.command import killed_at_the_end
from tests.support.serving import running, wait_for

_LOGS = Path(__file__).resolve().parents[2] / "experiments" / "data" / "testbed" / "logs"
_RUN = RunOf("testbed", job_id="42", user="ann", name="restart", nodes=8, io_nodes=4)
_SECRET = "ion_secret"  # noqa: S105


@contextmanager
def _server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that gives one request to a function."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                try:
                    answer(connection)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(10)


def _hang(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def _trickle(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
    while True:
        connection.sendall(b"a")
        time.sleep(0.1)


def _says(text: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 20)
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        _hang(connection)

    return answer


def _copied(path: Path) -> NamedLog:
    return NamedLog(path.name, io.BytesIO(path.read_bytes()))


def _send(client: Ioncast) -> None:
    client.send_trace([NamedLog("app.darshan", io.BytesIO(b"log"))], _RUN)


@pytest.mark.parametrize("answer", [_hang, _trickle])
def test_a_deadline_holds_for_all_of_a_request(answer: Callable[[socket.socket], None]) -> None:
    with (
        _server(answer) as url,
        Ioncast(url, lambda: _SECRET, timeout_s=0.5) as client,
        pytest.raises(ServiceUnreachableError, match=r"within 0\.5 s") as raised,
    ):
        _send(client)
    assert _SECRET not in f"{raised.value!r} {raised.value}"


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 201 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_an_answer_of_another_program_is_rejected(text: bytes) -> None:
    with (
        _server(_says(text)) as url,
        Ioncast(url, lambda: _SECRET, timeout_s=5) as client,
        pytest.raises(ServiceUnreachableError),
    ):
        _send(client)


def test_a_refusal_says_why_and_when_to_come_again() -> None:
    problem = b'{"status": 429, "detail": "too\\nmany"}'
    head = b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n" % len(problem)
    with (
        _server(_says(head + problem)) as url,
        Ioncast(url, lambda: _SECRET) as client,
        pytest.raises(ServiceRefusedError) as raised,
    ):
        _send(client)
    assert (raised.value.status, raised.value.retry_after_s) == (429, 7.0)
    assert str(raised.value) == f"{url}: the service answers 429: too many"


@pytest.mark.parametrize(
    ("told", "runs", "bad"),
    [
        ({"runs": [[0, 2], [1]]}, [[0, 2], [1]], {}),
        ({"errors": [{"where": "form.log.1", "what": "it\nis cut"}]}, [], {1: "it is cut"}),
        ({"errors": [{"where": "form.nodes", "what": "0"}]}, [], {}),
        ({"runs": "all", "errors": "all"}, [], {}),
        ({"errors": [{"where": f"form.log.{'9' * 5000}"}]}, [], {}),
        ({"runs": [0, [1]], "errors": [1, None, {}]}, [], {}),
        (
            {"runs": [["a"]], "errors": [{"where": "form.log.-1"}, {"where": ["form.log.1"]}]},
            [],
            {},
        ),
    ],
)
def test_a_refusal_says_which_logs_it_is_about(
    told: dict[str, Any], runs: list[list[int]], bad: dict[int, str]
) -> None:
    error = ServiceRefusedError(422, "no", where="here", document=told)
    assert (error.runs, error.bad_logs) == (runs, bad)


def test_nobody_there_is_said_in_a_line(tmp_path: Path) -> None:
    for address in ("http://127.0.0.1:9", f"unix:{tmp_path}/none.sock"):
        with (
            Ioncast(address, lambda: _SECRET) as client,
            pytest.raises(ServiceUnreachableError, match="cannot be reached"),
        ):
            client.measured_systems()


_TEXT = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    "body", [b"{}", b'{"items": {}}', b'{"items": [7], "next": null}', b'{"items": [], "next": 1}']
)
def test_a_list_of_another_program_is_rejected(body: bytes) -> None:
    with (
        _server(_says(_TEXT % (len(body), body))) as url,
        Ioncast(url, lambda: _SECRET) as client,
        pytest.raises(ServiceUnreachableError, match="does not come from ioncast"),
    ):
        client.measured_systems()


@pytest.mark.serving
def test_systems_are_known_by_what_was_measured_on_them_however_many_there_are(
    tmp_path: Path,
) -> None:
    location = str(tmp_path / "ioncast.sqlite")
    measured = [f"system{number:04}" for number in range(1200)]
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
        for name in ("another", *measured):
            system_id = system_id_of(connection, name)
            if name != "another":
                about = {"sha256": name, "file": "a.csv", "format": "csv", "imported_at": "2026"}
                insert_import(connection, system_id=system_id, **about)
    # One worker: of two, one could know the token later than the other.
    with running(tmp_path, "--db", location, "--workers", "1") as served:
        with Ioncast(served.url, lambda: token) as client:
            assert client.measured_systems() == measured
        # Although everybody may read.
        with (
            Ioncast(served.url, lambda: "ion_wrong") as client,
            pytest.raises(ServiceRefusedError, match="answers 401"),
        ):
            client.measured_systems()


@pytest.mark.slow
def test_the_copy_of_a_large_log_is_not_copied_again() -> None:
    size = 200 << 20
    received = []

    def take(connection: socket.socket) -> None:
        head, _, body = connection.recv(1 << 20).partition(b"\r\n\r\n")
        told, count = int(head.lower().partition(b"content-length: ")[2].split()[0]), len(body)
        while count < told and (chunk := connection.recv(1 << 20)):
            count += len(chunk)
        received.append(count)
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")

    log = NamedLog("large.darshan", io.BytesIO(bytes(size)))
    with _server(take) as url, Ioncast(url, lambda: _SECRET) as client:
        tracemalloc.start()
        client.send_trace([log], _RUN)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert received[0] >= size
    assert peak_bytes < 16 << 20


@pytest.mark.serving
def test_the_service_takes_what_is_sent(tmp_path: Path) -> None:
    location = str(tmp_path / "ioncast.sqlite")
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
    with (
        running(tmp_path, "--db", location, "--workers", "1") as served,
        Ioncast(f"unix:{served.socket}", lambda: token) as client,
    ):
        path = _LOGS / "periodic-ionodes4.darshan"
        for _ in range(2):
            trace = client.send_trace([_copied(path)], _RUN)
            outcome = client.send_outcome([_copied(path)], _RUN)
        assert outcome["run_id"] == trace["run_id"]
        application = served.ask(f"/v1/applications/{trace['application_id']}").json
        assert application["user"] == "ann"
        [run] = application["newest_runs"]["items"]
        assert trace["bytes"] == sum(phase["bytes"] for phase in run["phases"]) > 0
        with pytest.raises(ServiceRefusedError) as raised:
            client.send_outcome([NamedLog("no.darshan", io.BytesIO(b"no log"))], _RUN)
        assert raised.value.status == 422
        assert "no.darshan" in raised.value.detail
        assert client.decision("unknown/../id") is None
        name = "x" * 1000
        with pytest.raises(ServiceRefusedError, match="409"):
            client.send_trace([_copied(path)], RunOf("testbed", user="ann", name=name))


_ASKS = """
import io, sys
from scheduler_plugin.service_client import Ioncast, NamedLog, RunOf
from scheduler_plugin.rounds import ended_by_signals
from scheduler_plugin.slurm import Slurm
with (
    ended_by_signals(),
    Ioncast(sys.argv[1], lambda: "ion_secret", 600) as service,
    Slurm(sys.argv[1], "root", lambda: "secret", 600) as slurm,
):
    print("asking", flush=True)
    if sys.argv[2] == "slurm":
        slurm.jobs()
    service.send_trace([NamedLog("app.darshan", io.BytesIO(b"log"))], RunOf("testbed"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["slurm", "service"])
def test_a_signal_ends_a_request_at_once(whom: str) -> None:
    with _server(_hang) as url:
        command = [sys.executable, "-c", _ASKS, url, whom]
        with killed_at_the_end(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"asking\n"
            wait_for(lambda: _is_asleep(process.pid), "a process that waits")
            os.kill(process.pid, signal.SIGTERM)
            # Without the signal the request would take longer.
            assert process.wait(60) == 0
            assert process.stderr is not None
            assert process.stderr.read() == b""


_IS_ENDED_IN_THE_MIDDLE = """
import os, signal, time
from scheduler_plugin.rounds import ended_by_signals
from scheduler_plugin.slurm import Slurm
ask_clock = time.get_clock_info
def end(name):
    # The loop that a request runs in is half made.
    os.kill(os.getpid(), signal.SIGTERM)
    return ask_clock(name)
with ended_by_signals(), Slurm("http://127.0.0.1:9", "root", lambda: "secret", 600) as slurm:
    time.get_clock_info = end
    slurm.jobs()
"""


def test_a_signal_before_a_request_has_begun_ends_without_a_word() -> None:
    command = [sys.executable, "-c", _IS_ENDED_IN_THE_MIDDLE]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def _is_asleep(pid: int) -> bool:
    time.sleep(0.2)
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
