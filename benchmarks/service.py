"""Cost of the scheduler's question: our service compared with a bare Flask application.

    python benchmarks/service.py [--measurements N] [--applications N] [--rounds N] [--seconds S]

Both run under gunicorn with the same settings and answer the same requests. They take turns, so
that a slow minute of the machine affects both. The claims at the end are for information: a missed
one does not change the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from database import SYSTEM, seeded, synthetic, write_csv
from measuring import DATA, Claim, ioncast, machine

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.runs import NewRun, store_run
from ioncast.service.store.tokens import add_token
from predictor.matching.same_application import scaled
from summario.phases.extract import extract_phases
from summario.phases.tables import to_record
from summario.reading.log import read_log

PACKAGES = ("ioncast", "flask", "gunicorn", "pydantic")
HERE = Path(__file__).resolve().parent
LOGS = HERE.parent / "experiments" / "data" / "testbed" / "logs"
SMALL = sorted(LOGS.glob("*.darshan"))
# The log has 64,000 records.
LARGE = [DATA / "runs/logs/large-64k-records.darshan"]
UPLOADERS = 2
# The web process, which schedulers need not ask.
AT_BIND = "`bind`, TCP, wrk"
ONE_BY_ONE = "unix socket, a connection for each request, one at a time"
KINDS = ("hacc-io-ionodes0", "multiphase-ionodes0", "periodic-ionodes0")
CELLS = 10
RUNS = 3
QUESTIONS = 2_000
# Default settings of `ioncast serve` for gunicorn.
WORKERS, THREADS, KEEPALIVE_S = 2, 8, 5
PREPARED_WITHIN_S = 3600
BARE = """\
from flask import Flask

app = Flask(__name__)


@app.get("/v1/decisions")
def hello():
    return "hello"
"""

WRK = shutil.which("wrk") or ""
Ask = Callable[["Server"], "Asked"]
Meanwhile = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes
    ----------
    name : str
        The name in tables.
    pid : int
        Id of its first process.
    port : int
        Its port on 127.0.0.1.
    socket : Path
        Its unix socket.
    decisions : Server or None
        The addresses where it answers only decisions, if it has them.
    """

    name: str
    pid: int
    port: int
    socket: Path
    decisions: Server | None = None


@dataclass(frozen=True)
class Asked:
    """A client's results of one round."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    errors: int
    cpu_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """The server's CPU time for a request; a busy machine changes it less than other times."""
        return 1e6 * self.cpu_seconds / self.requests


@dataclass(frozen=True)
class Troubles:
    """Work that our service gets while both servers are asked.

    Attributes
    ----------
    uploads, large_uploads : callable
        Clients send logs without a pause.
    lock : callable
        Another process holds the database's exclusive lock.
    pages : callable
        It does, and as many clients as there are threads ask for pages.
    """

    uploads: Meanwhile
    large_uploads: Meanwhile
    lock: Meanwhile
    pages: Meanwhile


@dataclass(frozen=True)
class Case:
    """A way to ask, and its results round by round.

    Attributes
    ----------
    name : str
        The name in tables.
    ask : callable
        Asks a server for one round.
    meanwhile : callable
        Opens a block in which our service gets other work, while both servers are asked.
    bare, ours : list of Asked
        The results of both servers.
    """

    name: str
    ask: Ask
    meanwhile: Meanwhile = contextlib.nullcontext
    bare: list[Asked] = field(default_factory=list)
    ours: list[Asked] = field(default_factory=list)

    def ratios(self, figure: str) -> list[float]:
        """Our figure divided by the bare server's, of each round."""
        pairs = zip(self.ours, self.bare, strict=True)
        return [getattr(a, figure) / getattr(b, figure) for a, b in pairs]

    def ratio(self, figure: str) -> float:
        """The median over the rounds of our figure divided by the bare server's."""
        return statistics.median(self.ratios(figure))

    def shown(self, figure: str) -> str:
        """The median of the ratios, and the lowest and the highest."""
        ratios = self.ratios(figure)
        return f"{self.ratio(figure):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    arguments = parse_arguments()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ioncast-benchmark-")))
        database = folder / "benchmark.sqlite"
        fill_measurements(database, folder, arguments.measurements)
        token = fill_history(database, arguments.applications)
        paths = write_questions(folder, arguments.applications)
        bare = stack.enter_context(bare_server(folder))
        ours = stack.enter_context(our_service(folder, database))
        wait_until_prepared(ours)
        uploaded: Counter[int] = Counter()
        cases = ways_to_ask(
            paths,
            arguments.seconds,
            arguments.connections,
            Troubles(
                uploads=partial(uploading, ours, token, uploaded, SMALL, 1),
                large_uploads=partial(uploading, ours, token, uploaded, LARGE, UPLOADERS),
                lock=partial(locked, database),
                pages=partial(waiting_pages, ours, database),
            ),
        )
        for _ in range(arguments.rounds):
            for case in cases:
                measure(case, bare, ours)
        print_cases(cases)
        told = ", ".join(f"{number} with {code}" for code, number in uploaded.items())
        print(f"\nLogs that were uploaded meanwhile were answered: {told}")
        print_memory(bare, ours)
        print("\nClaims, by the medians of the ratios of each round")
        print(*claims(cases), sep="\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the scheduler's question costs.")
    numbers = {
        "measurements": (1_000_000, "measurements in the database, a multiple of 10"),
        "applications": (10_000, f"applications in the history, {RUNS} runs each"),
        "rounds": (5, "times that each way to ask is measured"),
        "seconds": (5, "that each takes"),
        "connections": (16, "at the same time"),
    }
    for name, (default, what) in numbers.items():
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{what} ({default:,})"
        )
    arguments = parser.parse_args()
    for name in numbers:
        if getattr(arguments, name) < (CELLS if name == "measurements" else 1):
            parser.error(f"--{name} is too small")
    if not WRK:
        parser.error("wrk is not installed; install it (Debian's package has this name)")
    if not LARGE[0].is_file():
        parser.error(f"the logs of {DATA} are missing")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


def fill_measurements(database: Path, folder: Path, measurements: int) -> None:
    table = folder / "measurements.csv"
    write_csv(table, synthetic(measurements // CELLS))
    start = time.monotonic()
    command = ("bench", "import", table, "--system", SYSTEM, "--db", database)
    subprocess.run([ioncast(), *command], check=True, stdout=subprocess.DEVNULL)
    table.unlink()
    print(f"{measurements:,} measurements, imported in {time.monotonic() - start:.0f} s")


def fill_history(database: Path, applications: int) -> str:
    """Store runs of applications of all sizes; return a token that may upload."""
    chance = seeded(3)
    kinds = [extract_phases(read_log(LOGS / f"{kind}.darshan")) for kind in KINDS]
    start = time.monotonic()
    with opened_database(database) as engine, transaction(engine, write=True) as connection:
        for application in range(applications):
            tasks = tasks_of(application)
            phases = [to_record(phase) for phase in scaled(chance.choice(kinds), tasks)]
            for run in range(RUNS):
                new = NewRun(
                    system=SYSTEM,
                    executable=executable_of(application),
                    user=user_of(application),
                    name=f"job{application % 10}",
                    logs=[hashlib.sha256(f"{application} {run}".encode()).hexdigest()],
                    tasks=tasks,
                    nodes=max(tasks // 32, 1),
                    phases=phases,
                )
                store_run(connection, new)
        token = add_token(connection, "benchmark", "scheduler")
    took = time.monotonic() - start
    print(f"{applications:,} applications with {RUNS} runs each, stored in {took:.0f} s")
    return token


def executable_of(application: int) -> str:
    return f"/apps/group{application % 100}/bin/solver{application}"


def tasks_of(application: int) -> int:
    return 2 ** (4 + application * 7 % 9)


def user_of(application: int) -> str:
    return f"user{application % 500}"


def write_questions(folder: Path, applications: int) -> Path:
    """Write a file of a scheduler's requests; one job in ten is unknown."""
    chance = seeded(4)
    lines = []
    for _ in range(QUESTIONS):
        application = chance.randrange(applications)
        is_known = chance.random() < 0.9
        # The size of the stored runs, or twice this size.
        tasks = tasks_of(application) * chance.choice((1, 1, 2))
        query = {
            "system": SYSTEM,
            "user": user_of(application),
            "executable": executable_of(application) if is_known else "./a.out",
            "name": f"job{application % 10}" if is_known else "test",
            "nodes": max(tasks // 32, 1),
            "tasks": tasks,
            "job_id": chance.randrange(10_000_000),
        }
        lines.append(f"/v1/decisions?{urlencode(query)}\n")
    path = folder / "questions"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@contextlib.contextmanager
def bare_server(folder: Path) -> Iterator[Server]:
    (folder / "bare.py").write_text(BARE, encoding="utf-8")
    port, place = free_port(), folder / "bare.sock"
    options = {
        "bind": f"127.0.0.1:{port}",
        "workers": WORKERS,
        "threads": THREADS,
        "keep-alive": KEEPALIVE_S,
        "worker-class": "gthread",
        "log-level": "warning",
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "gunicorn", *arguments, "--bind", f"unix:{place}"]
    with running([*command, "--preload", "--no-control-socket", "bare:app"], folder) as pid:
        yield answering(Server("bare Flask", pid, port, place))


@contextlib.contextmanager
def our_service(folder: Path, database: Path) -> Iterator[Server]:
    port, place = free_port(), folder / "ioncast.sock"
    apart, place_apart = free_port(), folder / "decisions.sock"
    options = {
        "bind": f"127.0.0.1:{port}",
        "decisions-bind": f"127.0.0.1:{apart}",
        "workers": WORKERS,
        "threads": THREADS,
        "state": folder / "state",
        "db": database,
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    command = [str(ioncast()), "serve", *arguments, "--bind", f"unix:{place}"]
    command += ["--decisions-bind", f"unix:{place_apart}"]
    # One client sends as many requests as all users of a machine.
    environment = {"IONCAST_REQUESTS_PER_MINUTE": "1000000", "OMP_NUM_THREADS": "1"}
    with running(command, folder, environment) as pid:
        decisions = answering(Server("ioncast", pid, apart, place_apart))
        yield answering(Server("ioncast", pid, port, place, decisions))


@contextlib.contextmanager
def running(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[int]:
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **(environment or {})}, stderr=subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def answering(server: Server) -> Server:
    """Wait until a server answers, and return it."""
    end = time.monotonic() + 60
    while True:
        try:
            get(server, f"/v1/decisions?system={SYSTEM}")
            return server
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def get(server: Server, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def retry_after_s(server: Server, path: str) -> float:
    """Send a request, and return the seconds after which its answer asks to come again."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return float(answer.headers.get("Retry-After", "0"))


def wait_until_prepared(ours: Server) -> None:
    """Wait until all answers are prepared, also those that no number is likely enough."""
    start = time.monotonic()
    while not json.loads(get(ours, "/readyz"))["ready"]:
        if time.monotonic() > start + PREPARED_WITHIN_S:
            sys.exit(f"not prepared within {PREPARED_WITHIN_S} s")
        time.sleep(1)
    print(f"all answers prepared {time.monotonic() - start:.0f} s after the service's start")


def ways_to_ask(paths: Path, seconds: int, connections: int, troubles: Troubles) -> list[Case]:
    def tcp(server: Server, *, close: bool = False) -> Asked:
        return by_wrk(server.decisions or server, paths, seconds, connections, close=close)

    def unix(server: Server, *, connections: int = connections, close: bool = False) -> Asked:
        place = server.decisions or server
        return by_ourselves(place, paths, seconds, connections, close=close)

    def at_bind(server: Server) -> Asked:
        return by_wrk(server, paths, seconds, connections, close=False)

    one_by_one = partial(unix, connections=1, close=True)
    return [
        Case("TCP, a connection for each request, wrk", partial(tcp, close=True)),
        Case("unix socket", unix),
        *(
            Case(f"{way}{when}", ask, meanwhile)
            for way, ask in (("TCP, wrk", tcp), (ONE_BY_ONE, one_by_one))
            for when, meanwhile in (
                ("", contextlib.nullcontext),
                (", while a client uploads logs", troubles.uploads),
                (f", while {UPLOADERS} clients upload 3 MB", troubles.large_uploads),
                (", while the database is locked", troubles.lock),
                (", while pages wait for a locked database", troubles.pages),
            )
        ),
        Case(AT_BIND, at_bind),
    ]


def by_wrk(server: Server, paths: Path, seconds: int, connections: int, *, close: bool) -> Asked:
    options = ["--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
    script = ["--script", str(HERE / "asking.lua")]
    header = ["--header", "Connection: close"] if close else []
    url = f"http://127.0.0.1:{server.port}"
    done = subprocess.run(
        [WRK, *options, *script, *header, url],
        env={**os.environ, "IONCAST_PATHS": str(paths)},
        check=True,
        capture_output=True,
        text=True,
    )
    return read_asked(done.stdout)


def by_ourselves(
    server: Server, paths: Path, seconds: int, connections: int, *, close: bool
) -> Asked:
    command = [sys.executable, HERE / "asking.py", server.socket, paths]
    options = ["--seconds", str(seconds), "--connections", str(connections)]
    done = subprocess.run(
        [*command, *options, *(["--close"] if close else [])],
        check=True,
        capture_output=True,
        text=True,
    )
    return read_asked(done.stdout)


def read_asked(output: str) -> Asked:
    return Asked(**json.loads(output.strip().splitlines()[-1]))


def measure(case: Case, bare: Server, ours: Server) -> None:
    """Ask both for a round."""
    with case.meanwhile():
        case.bare.append(ask(case, bare))
        case.ours.append(ask(case, ours))


def ask(case: Case, server: Server) -> Asked:
    before = cpu_seconds(server.pid)
    found = case.ask(server)
    return replace(found, cpu_seconds=cpu_seconds(server.pid) - before)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and its descendants."""
    ticks = 0
    for each in (pid, *descendants(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = (
                Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            )
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold the database's exclusive lock, which stops all readers and writers."""
    with contextlib.closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield


@contextlib.contextmanager
def uploading(
    ours: Server, token: str, statuses: Counter[int], paths: Sequence[Path], clients: int
) -> Iterator[None]:
    """Send logs one after the other, in a thread for each client."""
    stop = threading.Event()
    logs = [path.read_bytes() for path in paths]

    def upload() -> None:
        for log in itertools.cycle(logs):
            if stop.is_set():
                return
            statuses[send_log(ours, token, log)] += 1

    with in_threads(upload, clients, stop):
        yield


@contextlib.contextmanager
def waiting_pages(ours: Server, database: Path) -> Iterator[None]:
    """Ask for pages of a locked database, by as many clients as the web process has threads."""
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            stop.wait(retry_after_s(ours, "/v1/systems"))

    with locked(database), in_threads(look, THREADS, stop):
        yield


@contextlib.contextmanager
def in_threads(work: Callable[[], None], number: int, stop: threading.Event) -> Iterator[None]:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def send_log(ours: Server, token: str, log: bytes) -> int:
    """Send a log and return the HTTP status."""
    body, headers = form_of({"system": SYSTEM, "user": "uploader"}, "run.darshan", log)
    headers["Authorization"] = f"Bearer {token}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", ours.port)) as connection:
        connection.request("POST", "/v1/traces", body, headers)
        return connection.getresponse().status


def form_of(fields: Mapping[str, str], name: str, log: bytes) -> tuple[bytes, dict[str, str]]:
    """The body of a form with a log, and its headers."""
    disposition = "--limit\r\nContent-Disposition: form-data;"
    parts = [f'{disposition} name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()]
    parts.append(f'{disposition} name="log"; filename="{name}"\r\n\r\n')
    body = b"".join([*(part.encode() for part in parts), log, b"\r\n--limit--\r\n"])
    return body, {"Content-Type": "multipart/form-data; boundary=limit"}


def print_cases(cases: Iterable[Case]) -> None:
    print(
        "\n| asked | requests/s, bare Flask | ioncast | ratio | p50 ms, bare | ioncast"
        " | p99 ms, bare | ioncast | ratio | CPU µs, bare | ioncast |"
    )
    print("| --- " + "| ---: " * 10 + "|")
    for case in cases:
        cells = [
            *(f"{middle(found, 'per_second'):,.0f}" for found in (case.bare, case.ours)),
            case.shown("per_second"),
            *(f"{middle(found, 'p50_ms'):.2f}" for found in (case.bare, case.ours)),
            *(f"{middle(found, 'p99_ms'):.2f}" for found in (case.bare, case.ours)),
            case.shown("p99_ms"),
            *(f"{middle(found, 'cpu_us'):,.0f}" for found in (case.bare, case.ours)),
        ]
        print(f"| {case.name} | {' | '.join(cells)} |")
    lost = sum(each.errors for case in cases for each in (*case.bare, *case.ours))
    print(f"\nRequests without an answer, or answered otherwise than with 200: {lost}")


def middle(found: Iterable[Asked], figure: str) -> float:
    return statistics.median(getattr(each, figure) for each in found)


def print_memory(*servers: Server) -> None:
    print("\n| memory (PSS) | MiB |\n| --- | ---: |")
    for server in servers:
        for pid in (server.pid, *descendants(server.pid)):
            print(f"| {server.name}, {name_of(pid)} | {pss_mib(pid):.0f} |")


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def children(pid: int) -> list[int]:
    """Children of all threads of a process."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text(encoding="ascii").split()]


def name_of(pid: int) -> str:
    """Return the module in the command of a process, else its program."""
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    return words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name


def pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def claims(cases: Iterable[Case]) -> Iterator[Claim]:
    for case in cases:
        if case.name == AT_BIND:
            continue
        faster, later = case.ratio("per_second"), case.ratio("p99_ms")
        yield Claim(
            f"{case.name}: at least 0.6 × the bare throughput", f"{faster:.2f} ×", faster >= 0.6
        )
        yield Claim(f"{case.name}: p99 less than 3 × the bare one's", f"{later:.2f} ×", later < 3)


if __name__ == "__main__":
    main()
