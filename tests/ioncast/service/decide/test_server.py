"""The process that only answers schedulers: nothing around it keeps it from an answer.

While something is broken, decisions are asked all the time: none fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.running import command
from ioncast.service.store.tables import decisions
from ioncast.service.store.tokens import add_token
from tests.support.databases import BOTH_DATABASES
from tests.support.postgresql import Server
from tests.support.serving import (
    PATIENCE_S,
    Answer,
    Asking,
    Served,
    children_of,
    start,
    stop,
    wait_for,
)

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
SHIPPED_SETTINGS = Path(command.__file__).with_name("deploy") / "service.toml"
THREADS = 4
ASKING_THREADS = 2


@dataclass(frozen=True)
class Site:
    """A service on a database with some history, with one worker of few threads."""

    location: str
    server: Server | None
    token: str
    served: Served

    def has_stored(self, numbers: list[str]) -> bool:
        with opened_database(self.location) as database, transaction(database) as connection:
            return set(numbers) <= set(
                connection.scalars(decisions.select().with_only_columns(decisions.c.id))
            )


@pytest.fixture(scope="module", params=BOTH_DATABASES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("deciding")
    with contextlib.ExitStack() as stack:
        server, location = None, str(folder / "bench.sqlite")
        if request.param == "sqlite":
            shutil.copy(request.getfixturevalue("demo_on_sqlite"), location)
        else:
            server = request.getfixturevalue("postgresql")
            location = stack.enter_context(server.database("deciding"))
            server.copy(request.getfixturevalue("demo_on_postgresql"), "deciding")
        with opened_database(location) as database, transaction(database, write=True) as connection:
            token = add_token(connection, "a scheduler", "scheduler")
        options = ("--db", location, "--workers", "1", "--threads", str(THREADS))
        # Requests for pages wait until the end of a test.
        patience = {"IONCAST_PATIENCE_S": "60", "IONCAST_REQUESTS_PER_MINUTE": "1000000"}
        served = start(folder, *options, environment=patience)
        stack.callback(stop, served)
        served.wait_until_ready()
        wait_for(lambda: served.decide(HACC).json["source"] == "history", "prepared answers")
        yield Site(location, server, token, served)
        sys.stderr.write(served.log.read_text(errors="replace")[-4000:])


on_sqlite = pytest.mark.parametrize("site", ["sqlite"], indirect=True)


@contextlib.contextmanager
def locked(site: Site) -> Iterator[None]:
    """Nobody gets an answer from the database: SQLite is locked, or PostgreSQL is frozen."""
    if site.server is None:
        connection = sqlite3.connect(site.location, isolation_level=None, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.execute("BEGIN EXCLUSIVE")
            yield
        return
    master = int((site.server.folder / "data" / "postmaster.pid").read_text().split()[0])
    frozen = [master, *children_of(master)]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(frozen):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def pages(served: Served, number: int) -> Iterator[list[Answer]]:
    """Ask for so many pages at the same time; yield the answers that came so far."""
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(served.ask("/v1/systems")))
        for _ in range(number)
    ]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        for thread in threads:
            thread.join()


def asking(site: Site) -> Asking:
    return Asking(site.served.decide, HACC, ASKING_THREADS)


def assert_nobody_noticed(site: Site, asked: Asking) -> None:
    """All questions were answered from the history, and the decisions reach the database."""
    assert asked.numbers
    assert not asked.refused, asked.refused
    assert not asked.unprepared, asked.unprepared
    wait_for(lambda: site.has_stored(asked.numbers), "stored decisions")


@pytest.mark.promise("service-database-away")
@pytest.mark.promise("service-no-free-threads")
def test_decisions_do_not_wait_for_pages_that_wait_for_the_database(site: Site) -> None:
    with pages_that_wait(site) as answers, asking(site) as asked:
        for _ in range(50):
            asked.wait_until_answered()
        assert not answers
    assert_nobody_noticed(site, asked)


@contextlib.contextmanager
def pages_that_wait(site: Site) -> Iterator[list[Answer]]:
    """While the database is locked, more pages are asked for than there are threads; all wait."""
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(contextlib.ExitStack())
        lock.enter_context(locked(site))
        answers = stack.enter_context(pages(site.served, 2 * THREADS))
        stack.callback(lock.close)
        yield answers


@pytest.mark.promise("service-database-away")
def test_the_process_has_no_database_open(site: Site) -> None:
    with asking(site) as asked:
        asked.wait_until_answered()
        folder = Path(f"/proc/{site.served.decider()}")
        descriptors = (folder / "fd").iterdir
        held = wait_for(lambda: [str(each.readlink()) for each in descriptors()], "files")
    assert not [place for place in held if place.startswith(site.location)]
    inodes = {place[len("socket:[") : -1] for place in held if place.startswith("socket:")}
    # A connection to PostgreSQL would be a socket whose other end is not one of our clients.
    unix = (line.split() for line in (folder / "net/unix").read_text().splitlines()[1:])
    named = {fields[7] for fields in unix if fields[6] in inodes and len(fields) > 7}
    assert named == {str(site.served.decisions)}
    tcp = (line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:])
    assert not {fields[9] for fields in tcp} & inodes
    environment = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
    assert site.location.encode() not in environment


@pytest.mark.promise("service-database-away")
@pytest.mark.promise("service-no-space-for-metrics")
@pytest.mark.parametrize("module", ["ioncast.service.decide.server", "ioncast.service.decide.wsgi"])
def test_no_module_of_the_process_loads_a_database_or_flask(module: str) -> None:
    program = (
        f"import {module}, sys; print(*{{'sqlalchemy', 'flask', 'prometheus_client', 'psycopg',"
        " 'alembic', 'jinja2', 'sklearn', 'scipy', 'pandas', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


@pytest.mark.promise("service-process-for-decisions")
@on_sqlite
def test_a_killed_process_is_replaced_and_its_clients_wait(site: Site) -> None:
    before = site.served.decide(HACC).json
    with asking(site) as asked:
        for _ in range(3):
            victim = site.served.decider()
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda victim=victim: site.served.decider() != victim, "another process")
            asked.wait_until_answered()
    # Only questions that the victims were answering have no answer.
    assert len(asked.refused) <= 3 * ASKING_THREADS, asked.refused
    assert not asked.unprepared, asked.unprepared
    after = site.served.decide(HACC).json
    assert {**after, "decision_id": ""} == {**before, "decision_id": ""}
    wait_for(lambda: site.has_stored([before["decision_id"], *asked.numbers]), "stored decisions")


@pytest.mark.promise("service-process-for-decisions")
@on_sqlite
def test_a_question_while_no_process_runs_waits_for_the_next_one(site: Site) -> None:
    victim = site.served.decider()
    os.kill(site.served.process.pid, signal.SIGSTOP)
    try:
        os.kill(victim, signal.SIGKILL)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(site.served.decisions))
            client.sendall(f"GET {HACC} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            os.kill(site.served.process.pid, signal.SIGCONT)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
    finally:
        os.kill(site.served.process.pid, signal.SIGCONT)


@pytest.mark.promise("service-web")
@on_sqlite
def test_a_killed_web_process_changes_nothing(site: Site) -> None:
    with asking(site) as asked:
        worker = site.served.web()
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: site.served.web() != worker, "another web process")
        asked.wait_until_answered()
    assert_nobody_noticed(site, asked)


@pytest.mark.promise("service-no-free-threads")
@on_sqlite
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /v1/decisions HTTP/1.1\r\nHost: x\r\nX-A", id="half a head"),
        pytest.param(b"\r\n\r\n", id="empty lines"),
        pytest.param(b"GET /v1/decisions?system=a HTTP/1.1\r\nHost: x\r\n\r\n", id="kept"),
        pytest.param(
            b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
            id="half a body",
        ),
        pytest.param(
            b"GET /v1/decisions?system=a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
            id="a body by GET",
        ),
    ],
)
def test_clients_that_do_nothing_keep_nobody_from_an_answer(site: Site, sent: bytes) -> None:
    with contextlib.ExitStack() as stack, asking(site) as asked:
        # More than the process keeps connected, and more than threads that could wait.
        for _ in range(2_100):
            client = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
            # With a limit of time, connecting would fail at once while the queue is full.
            client.connect(str(site.served.decisions))
            client.settimeout(PATIENCE_S)
            with contextlib.suppress(OSError):
                client.sendall(sent)
        for _ in range(20):
            asked.wait_until_answered()
    assert_nobody_noticed(site, asked)


@on_sqlite
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET " + b"/" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: 1\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * (1 << 17) + b"\r\n\r\n", 431),
        (b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (
            b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
            401,
        ),
        (b"GET /v1/decisions?system=a HTTP/1.1\r\nHost: \xff{}<>\r\n\r\n", 200),
        (b"GET /v1/decisions?system=\xff%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ],
)
def test_anything_is_answered(site: Site, sent: bytes, status: int) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(site.served.decisions))
        with contextlib.suppress(OSError):
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1 << 16):
                received += part
    head, _, body = received.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status, head
    assert json.loads(body).get("status", 200) == status


@pytest.mark.promise("service-no-free-threads")
@on_sqlite
def test_a_client_that_reads_no_answer_keeps_nobody_from_one(site: Site) -> None:
    request = f"GET {HACC} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client, asking(site) as asked:
        client.connect(str(site.served.decisions))
        for _ in range(5_000):
            # Later requests find no room, because the service waits until the answers are read.
            if not select.select([], [client], [], 0.5)[1]:
                break
            client.send(request)
        for _ in range(20):
            asked.wait_until_answered()
    assert_nobody_noticed(site, asked)


@on_sqlite
def test_requests_that_come_together_are_all_answered(site: Site) -> None:
    request = f"GET {HACC} HTTP/1.1\r\nHost: x\r\n".encode()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(site.served.decisions))
        client.sendall((request + b"\r\n") * 50 + request + b"Connection: close\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 51


@on_sqlite
@pytest.mark.parametrize("place", ["decide", "ask"])
def test_a_script_and_a_token_work_at_each_address(site: Site, place: str) -> None:
    headers = {"Authorization": f"Bearer {site.token}", "Content-Type": "application/json"}
    script = "srun ./hacc_io_write_posix_fpp 100 out"
    asked = {"system": "testbed", "user": "demo", "tasks": 16, "script": script}
    body = json.dumps(asked).encode()

    def decided() -> bool:
        sent = getattr(site.served, place)
        answer = sent("/v1/decisions", method="POST", body=body, headers=headers)
        return answer.status == 200 and answer.json["source"] == "history"

    wait_for(decided, "decision for the script's program")


@pytest.mark.promise("service-no-space-for-metrics")
@on_sqlite
def test_decisions_are_counted_with_those_of_the_workers(site: Site) -> None:
    def decided() -> float:
        lines = site.served.ask("/metrics").body.decode().splitlines()
        name = 'ioncast_decisions_total{source="history"}'
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    before = decided()
    for _ in range(3):
        assert site.served.decide(HACC).status == 200
        assert site.served.ask(HACC).status == 200
    assert decided() == before + 6


def test_a_low_limit_of_open_files_ends_nothing(tmp_path: Path) -> None:
    options = ("--db", str(tmp_path / "db.sqlite"), "--workers", "1")
    served = start(tmp_path, *options, under=("prlimit", "--nofile=256:256"))
    try:
        decider = served.decider()
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                client = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
                client.settimeout(PATIENCE_S)
                client.connect(str(served.decisions))
            assert served.decide(HACC).status == 200
        assert served.decider() == decider
    finally:
        stop(served)


@pytest.mark.parametrize("place", ["run/decisions.sock", "state/decisions.sock"])
def test_an_older_file_of_settings_gets_the_socket_at_its_place(tmp_path: Path, place: str) -> None:
    found = tmp_path / place
    found.parent.mkdir()
    # A killed service leaves its socket.
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as stale:
        stale.bind(str(found))
    older = tmp_path / "service.toml"
    lines = SHIPPED_SETTINGS.read_text().splitlines(keepends=True)
    older.write_text("".join(line for line in lines if not line.startswith("decisions_bind")))
    # systemd sets this variable.
    environment = {"RUNTIME_DIRECTORY": str(tmp_path / "run") if "run" in place else ""}
    environment["IONCAST_DECISIONS_GROUP"] = "no-such-group"
    options = ("--db", str(tmp_path / "db.sqlite"), "--config", str(older))
    served = start(tmp_path, *options, environment=environment, names_decisions=False)
    try:
        wait_for(lambda: served.ask("/healthz", timeout_s=2).status == 200, "worker")
        assert f"ioncast: decisions on unix:{found}, open to every user: " in served.log.read_text()
        assert found.stat().st_mode == served.socket.stat().st_mode
        everything = served.processes()
    finally:
        stop(served)
    assert served.process.returncode == 0
    assert not found.exists()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everything), "end of all")


PROGRAM = """
local module = dofile(arg[1])
local slurm = {
    NO_VAL = 4294967294, NO_VAL16 = 65534,
    log_info = function(form, ...) print(string.format(form, ...)) end,
    log_error = function(form, ...) print(string.format(form, ...)) end,
}
local ioncast = module.new({
    mode = "on", system = "testbed", pool = 8, deadline_ms = 10000,
    address = arg[2], token = arg[3],
}, slurm)
local script = "#!/bin/sh\\nsrun ./hacc_io_write_posix_fpp 100000 out\\n"
local job = { name = "hacc-io", user_name = "demo", script = script, environment = {} }
ioncast.submit(job, {})
print(job.licenses)
"""


@on_sqlite
@pytest.mark.lua
@pytest.mark.parametrize("version", ["lua5.1", "lua5.4"])
def test_the_plugin_asks_there_with_and_without_a_token(site: Site, version: str) -> None:
    plugin = Path(__file__).resolve().parents[4] / "scheduler_plugin" / "lua" / "ioncast.lua"
    address = f"unix:{site.served.decisions}"
    for told in ((address,), (address, site.token)):
        asked = [version, "-", str(plugin), *told]

        def decided(asked: list[str] = asked) -> bool:
            done = subprocess.run(asked, input=PROGRAM, capture_output=True, text=True, check=True)
            sys.stderr.write(done.stdout)
            return done.stdout.splitlines()[-1] == "ionode:8"

        # The process learns of a token within two seconds.
        wait_for(decided, "decision")
