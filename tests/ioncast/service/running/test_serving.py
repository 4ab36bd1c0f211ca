"""The service as it runs at a site: processes are killed, the database goes and comes back.

The tests of one kind of database share a service with some history. Each test may stop it. A
test that needs another service starts its own.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, select, text

from benchdb.store.database import opened_database, transaction
from ioncast.service.decide.prepared import Reader, keep_reading, prepared_file
from ioncast.service.settings import Settings
from ioncast.service.store.tables import decisions
from ioncast.service.store.tokens import add_token
from tests.support.command import run_ioncast
from tests.support.databases import BOTH_DATABASES
from tests.support.postgresql import Server
from tests.support.posting import PATIENCE_S, Posting, stored, trace
from tests.support.serving import (
    PATIENT,
    Answer,
    Asking,
    Served,
    asked_meanwhile,
    children_of,
    start,
    stop,
    wait_for,
)
from tests.support.serving import running as served_by

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
ASKING_THREADS = 2
# Without this capability, root can write only to files with write permission.
AS_A_USER = ("setpriv", "--bounding-set", "-dac_override") if os.geteuid() == 0 else ()
on_sqlite = pytest.mark.parametrize("site", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("site", BOTH_DATABASES[1:], indirect=True)


@dataclass
class Site:
    """A database, its server if it has one, and the service on it, which may be stopped."""

    location: str
    server: Server | None
    folder: Path
    token: str
    served: Served

    @property
    def lives(self) -> bool:
        return self.served.process.poll() is None

    def start(self) -> None:
        """Start the service again at its address, without waiting until it is ready."""
        self.served = start_on(self.location, self.folder, self.served.port)

    def wait_until_prepared(self) -> None:
        """Wait until all decisions rest on the history, whichever process answers."""
        served = self.served
        wait_for(lambda: self._is_prepared(served.ask), "prepared answers")
        for each in served.all_deciders():
            with served.alone(each):
                wait_for(lambda: self._is_prepared(served.decide), "prepared answers")

    def _is_prepared(self, ask: Callable[..., Answer]) -> bool:
        return bool(ask(HACC, timeout_s=2).json["source"] == "history")

    def has_stored(self, numbers: Iterable[str]) -> bool:
        """Tell whether all of these decisions are in the database."""
        return set(numbers) <= self.stored()

    def stored(self) -> set[str]:
        """Read the ids of all decisions in the database."""
        with opened_database(self.location) as database, transaction(database) as connection:
            return set(connection.scalars(select(decisions.c.id)))


def start_on(location: str, folder: Path, port: int | None = None) -> Served:
    # With its low priority the process that reads uploads may take minutes to start.
    environment = {"IONCAST_PATIENCE_S": "1", "IONCAST_UPLOAD_S": PATIENT["IONCAST_UPLOAD_S"]}
    environment["IONCAST_REQUESTS_PER_MINUTE"] = "1000000"
    return start(folder, "--db", location, port=port, environment=environment, under=AS_A_USER)


def tell_server(location: str, *statements: str) -> None:
    """Run a server administrator's SQL on a database."""
    url = make_url(location).set(drivername="postgresql+psycopg")
    engine = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement.format(name=url.database)))
    engine.dispose()


@pytest.fixture(scope="module", params=BOTH_DATABASES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with contextlib.ExitStack() as stack:
        server, location = None, str(folder / "data" / "bench.sqlite")
        if request.param == "sqlite":
            (folder / "data").mkdir()
            shutil.copy(request.getfixturevalue("demo_on_sqlite"), location)
        else:
            server = request.getfixturevalue("postgresql")
            location = stack.enter_context(server.database("serving"))
            server.copy(request.getfixturevalue("demo_on_postgresql"), "serving")
            # Otherwise a server that fails loses its last commits and the copy's sequences.
            tell_server(location, "ALTER DATABASE {name} SET synchronous_commit = on", "CHECKPOINT")
        with opened_database(location) as database, transaction(database, write=True) as connection:
            token = add_token(connection, "an administrator", "admin")
        made = Site(location, server, folder, token, start_on(location, folder))
        made.wait_until_prepared()
        yield made
        if made.lives:
            stop(made.served)


@pytest.fixture
def shown_log(site: Site) -> Iterator[None]:
    """If a test fails, show the service's log during the test."""
    before = site.served.log.stat().st_size
    yield
    sys.stderr.write(site.served.log.read_bytes()[before:][-4000:].decode(errors="replace"))


@pytest.fixture
def running(site: Site, shown_log: None) -> Site:
    """The service answers from the history and accepts writes."""
    if not site.lives:
        site.start()
    site.served.wait_until_ready()
    site.wait_until_prepared()
    wait_for(lambda: readiness(site.served) == "ok", "database")
    return site


@pytest.fixture
def stopped(site: Site, shown_log: None) -> Site:
    """The service is stopped, and its database and state folder have some history."""
    if site.lives:
        stop(site.served)
    return site


def readiness(served: Served) -> str:
    found: str = served.ask("/readyz").json["database"]
    return found


def metrics(served: Served) -> bytes:
    return served.ask("/metrics").body


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    return False


def assert_nobody_noticed(site: Site, asking: Asking) -> None:
    """All decisions have an id, rest on the history and reach the database."""
    assert not asking.refused, asking.refused
    assert not asking.unprepared, asking.unprepared
    assert_all_decisions_are_kept(site, asking)


def assert_all_decisions_are_kept(site: Site, asking: Asking) -> None:
    assert asking.numbers
    wait_for(lambda: site.has_stored(asking.numbers), "stored decisions", PATIENCE_S)


def assert_all_is_kept_once(site: Site, posting: Posting) -> None:
    """Every accepted write is stored once, and every rejected one says when to try again."""
    assert not posting.wrong, posting.wrong
    for _, answer in posting.refused:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert int(answer.headers["Retry-After"]) > 0
    assert stored(site.served, posting) == posting.ids


@contextlib.contextmanager
def locked(site: Site) -> Iterator[None]:
    """Another program holds the lock that every writer needs."""
    if site.server is None:
        with contextlib.closing(
            sqlite3.connect(site.location, isolation_level=None, timeout=PATIENCE_S)
        ) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
        return
    with (
        opened_database(site.location) as database,
        transaction(database, write=True) as connection,
    ):
        connection.execute(text("LOCK TABLE systems"))
        yield


@contextlib.contextmanager
def read_only(site: Site) -> Iterator[None]:
    """For a while nobody may write to the database."""
    if site.server is None:
        Path(site.location).chmod(0o444)
        try:
            yield
        finally:
            Path(site.location).chmod(0o644)
        return
    setting = "default_transaction_read_only"
    disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    tell_server(site.location, f"ALTER DATABASE {{name}} SET {setting} = on", disconnect)
    try:
        yield
    finally:
        tell_server(site.location, f"ALTER DATABASE {{name}} RESET {setting}")


@contextlib.contextmanager
def gone(site: Site) -> Iterator[None]:
    """For a while the database's file is missing or its server is down."""
    if site.server is None:
        file = Path(site.location)
        away = file.rename(site.folder / "away.sqlite")
        try:
            yield
            assert not file.exists()
        finally:
            away.rename(file)
        return
    site.server.stop()
    try:
        yield
    finally:
        site.server.start()


@contextlib.contextmanager
def frozen(site: Site) -> Iterator[None]:
    """For a while the database's server accepts bytes and does not answer."""
    assert site.server is not None
    with site.server.frozen():
        yield


Trouble = Callable[[Site], AbstractContextManager[None]]


def test_every_decision_gets_into_the_database(running: Site) -> None:
    numbers = [running.served.ask(HACC).json["decision_id"] for _ in range(50)]
    wait_for(lambda: running.has_stored(numbers), "stored decisions")


@pytest.mark.promise("service-database-away")
@pytest.mark.parametrize("trouble", [locked, read_only, gone])
def test_without_its_database_the_service_decides_and_loses_nothing(
    running: Site, trouble: Trouble
) -> None:
    assert_it_decides_and_loses_nothing(running, trouble)


@pytest.mark.promise("service-database-away")
@on_postgresql
def test_with_a_frozen_database_the_service_decides_and_loses_nothing(running: Site) -> None:
    assert_it_decides_and_loses_nothing(running, frozen)


@pytest.mark.promise("service-database-away")
@on_postgresql
def test_a_frozen_database_shows_in_readiness_and_metrics(running: Site) -> None:
    with frozen(running):
        wait_for(lambda: readiness(running.served) == "unavailable", "notice")
        wait_for(lambda: b"ioncast_database_up 0.0" in metrics(running.served), "number")
    wait_for(lambda: readiness(running.served) == "ok", "notice")
    wait_for(lambda: b"ioncast_database_up 1.0" in metrics(running.served), "number")


def assert_it_decides_and_loses_nothing(running: Site, trouble: Trouble) -> None:
    before = running.served.log.stat().st_size
    reading = 200 if trouble is read_only else 503
    with Posting(running.served, running.token, f"while-{trouble.__name__}") as posting:
        posting.wait_until_accepted()
        with (
            asked_meanwhile(running.served, HACC) as asked,
            trouble(running),
            Asking(running.served.ask, HACC, ASKING_THREADS) as asking,
        ):
            posting.wait_until_refused()
            wait_for(lambda: running.served.ask("/v1/systems").status == reading, f"{reading}")
            asking.wait_until_answered()
            asked.wait_until_answered()
        posting.wait_until_accepted()
    assert_nobody_noticed(running, asking)
    assert_all_decisions_are_kept(running, asked)
    assert_all_is_kept_once(running, posting)
    said = running.served.log.read_bytes()[before:].decode()
    # The keeper reports trouble again only after it ended; on a busy machine there may be more.
    waits, over = (
        said.count(f"ioncast: {each}decisions wait for the database")
        for each in ("", "no longer true: ")
    )
    assert waits <= over + 1
    assert "error ignored" not in said
    assert "Traceback" not in said


@pytest.mark.promise("service-web")
def test_a_web_process_killed_under_load_is_replaced_and_nothing_accepted_is_lost(
    running: Site,
) -> None:
    served = running.served
    with (
        asked_meanwhile(served, HACC) as asked,
        Posting(served, running.token, "to-web") as posting,
        Asking(served.ask, HACC, ASKING_THREADS) as asking,
    ):
        posting.wait_until_accepted()
        asking.wait_until_answered()
        # The victim's process that reads uploads ends with it.
        victim = served.web()
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: served.web() != victim, "another web process")
        posting.wait_until_accepted()
    # Only clients that the victim was answering may get no answer.
    assert len(asking.refused) <= ASKING_THREADS, asking.refused
    assert not asking.unprepared, asking.unprepared
    for each in (asking, asked):
        assert_all_decisions_are_kept(running, each)
    assert_all_is_kept_once(running, posting)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_a_process_knows_what_was_prepared_before_it_answers(
    filled: None, settings: Settings
) -> None:
    reader = Reader(prepared_file(settings.state))
    keep_reading(reader)
    assert len(reader.entries) > 0


@pytest.mark.promise("service-keeper")
def test_a_killed_keeper_is_replaced(running: Site) -> None:
    victim = running.served.keeper()
    with asked_meanwhile(running.served, HACC) as asked:
        os.kill(victim, signal.SIGKILL)
        number = running.served.ask(HACC).json["decision_id"]
        wait_for(lambda: running.has_stored([number]), "stored decision")
        assert running.served.keeper() != victim
    assert_all_decisions_are_kept(running, asked)


@pytest.mark.promise("service-state-folder-deleted")
def test_a_deleted_state_folder_keeps_nobody_from_a_decision(running: Site) -> None:
    served = running.served
    with (
        Asking(served.ask, HACC, ASKING_THREADS) as asking,
        Asking(served.decide, HACC, ASKING_THREADS) as asking_there,
    ):
        asking.wait_until_answered()
        asking_there.wait_until_answered()
        # The keeper may write to it meanwhile.
        shutil.rmtree(served.state, ignore_errors=True)
        wait_for((served.state / "spool").exists, "spool")
        asking.wait_until_answered()
        asking_there.wait_until_answered()
    assert not asking.refused + asking_there.refused
    wait_for(lambda: served.ask(HACC).json["source"] == "history", "prepared answer")
    wait_for(lambda: served.decide(HACC).json["source"] == "history", "prepared answer")
    wait_until_decisions_are_stored_again(running, served.ask)
    wait_until_decisions_are_stored_again(running, served.decide)


def wait_until_decisions_are_stored_again(running: Site, ask: Callable[[str], Answer]) -> None:
    """Ask until a decision is stored; those of the first second went into a deleted file."""
    numbers: set[str] = set()

    def is_stored() -> bool:
        numbers.add(ask(HACC).json["decision_id"])
        return not numbers.isdisjoint(running.stored())

    wait_for(is_stored, "stored decision")


@pytest.mark.promise("service-data-deleted")
def test_a_deleted_user_keeps_nobody_from_a_decision(running: Site) -> None:
    question = HACC.replace("demo", "alice")
    with asked_meanwhile(running.served, HACC) as asked:
        of_alice = {running.served.decide(question).json["decision_id"] for _ in range(100)}
        wait_for(lambda: running.has_stored(of_alice), "stored decisions")
        told = ("--user", "alice", "--yes", "--db", running.location)
        assert run_ioncast("history", "delete", *told).returncode == 0
        assert of_alice.isdisjoint(running.stored())
    assert_all_decisions_are_kept(running, asked)


@pytest.mark.promise("service-part")
def test_a_service_killed_under_load_starts_again_with_all_that_it_accepted(
    running: Site,
) -> None:
    with (
        Posting(running.served, running.token, "to-a-master") as posting,
        Asking(running.served.ask, HACC, ASKING_THREADS) as asking,
        Asking(running.served.decide, HACC, ASKING_THREADS) as asking_there,
    ):
        posting.wait_until_accepted()
        asking.wait_until_answered()
        asking_there.wait_until_answered()
        others = running.served.processes()
        running.served.process.kill()
        running.served.process.wait()
        wait_for(lambda: not any(map(is_alive, others)), "end of the killed one's processes")
        running.start()
        posting.wait_until_accepted()
        asking.wait_until_answered()
        asking_there.wait_until_answered()
    for each in (asking, asking_there):
        assert not each.unprepared, each.unprepared
        assert_all_decisions_are_kept(running, each)
    assert len(asking_there.counts) == 1
    assert_all_is_kept_once(running, posting)


def test_a_stopped_service_ends_all_its_processes(running: Site) -> None:
    everything = running.served.processes()
    stop(running.served)
    assert running.served.process.returncode == 0
    # The service does not wait long for its keeper's end.
    wait_for(lambda: not any(map(is_alive, everything)), "end of all processes")


@pytest.mark.promise("service-database-away-at-start")
def test_a_service_that_starts_without_its_database_answers_from_its_state_folder(
    stopped: Site,
) -> None:
    assert_it_starts_and_keeps_decisions(stopped, gone)


@on_sqlite
def test_a_service_that_starts_where_it_may_only_read_keeps_decisions(stopped: Site) -> None:
    assert_it_starts_and_keeps_decisions(stopped, read_only)


def assert_it_starts_and_keeps_decisions(site: Site, trouble: Trouble) -> None:
    with trouble(site):
        site.start()
        wait_for(lambda: site.served.decide(HACC).status == 200, "process for decisions")
        with (
            asked_meanwhile(site.served, HACC) as asked,
            Asking(site.served.ask, HACC, ASKING_THREADS) as asking,
        ):
            wait_for(lambda: len(asking.numbers) > 50, "decisions")
            wait_for(lambda: readiness(site.served) == "unavailable", "notice")
    for each in (asking, asked):
        assert not each.unprepared, each.unprepared
        assert_all_decisions_are_kept(site, each)
    wait_for(lambda: readiness(site.served) == "ok", "notice")


@pytest.mark.promise("service-database-away-at-start")
def test_a_database_is_created_at_the_first_start_and_never_in_the_place_of_another(
    tmp_path: Path,
) -> None:
    location = tmp_path / "bench.sqlite"
    service = start(tmp_path, "--db", str(location))
    try:
        wait_for(lambda: readiness(service) == "ok", "database")
    finally:
        stop(service)
    location.unlink()
    # The file can be made again, and another version of ioncast does so.
    prepared_file(service.state).unlink()
    for _ in range(2):
        assert_it_creates_none(tmp_path, location)


def assert_it_creates_none(folder: Path, location: Path) -> None:
    service = start(folder, "--db", str(location))
    try:
        wait_for(lambda: readiness(service) == "unavailable", "notice")
        assert "the service starts without it" in service.log.read_text()
        assert not location.exists()
    finally:
        stop(service)


@pytest.mark.promise("service-database-away-at-start")
def test_a_service_starts_with_neither_a_database_nor_a_state_folder(tmp_path: Path) -> None:
    location = tmp_path / "bench.sqlite"
    location.write_text("this is no database")
    service = start(tmp_path, "--db", str(location))
    site = Site(str(location), None, tmp_path, "", service)
    try:
        wait_for(lambda: service.ask(HACC, timeout_s=2).status == 200, "decision")
        wait_for(lambda: service.decide(HACC, timeout_s=2).status == 200, "decision")
        with asked_meanwhile(service, HACC):
            wait_for(lambda: readiness(service) == "unavailable", "notice")
            assert service.ask("/v1/systems").status == 503
            number = service.ask(HACC).json["decision_id"]
        location.unlink()
        with opened_database(location):
            pass
        wait_for(lambda: site.has_stored([number]), "stored decision")
    finally:
        stop(service)


@on_sqlite
def test_a_state_folder_is_of_one_service_only(running: Site, tmp_path: Path) -> None:
    other = start(running.folder, "--db", str(tmp_path / "other.sqlite"))
    assert other.process.wait(PATIENCE_S) == 2
    assert "another service uses this state folder" in other.log.read_text()
    assert running.served.ask(HACC).status == 200


@pytest.mark.promise("service-web")
def test_nothing_is_left_of_an_upload_to_a_killed_worker(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    options = ("--db", str(tmp_path / "bench.sqlite"))
    environment = {"TMPDIR": str(temporary), "IONCAST_UPLOAD_S": "600"}
    item = trace("testbed", 0)

    def upload() -> int:
        headers = {"Content-Type": item.content_type}
        return served.ask("/v1/predictions", method="POST", body=item.body, headers=headers).status

    def open_files() -> set[str]:
        """The worker's files without a name in the folder."""
        names = set()
        for link in Path(f"/proc/{worker}/fd").iterdir():
            # A thread may close it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                names.add(str(link.readlink()))
        return {name for name in names if name.startswith(str(temporary))}

    with (
        served_by(tmp_path, *options, environment=environment) as served,
        ThreadPoolExecutor() as pool,
    ):
        worker = served.web()
        known = open_files()
        # The log was read, but the database is empty and knows no system.
        assert upload() == 404
        wait_for(lambda: open_files() == known, "end of the file")
        # The log waits until the worker's child goes on, which reads it.
        stopped = children_of(worker)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        lost = pool.submit(upload)
        wait_for(lambda: open_files() - known, "the file of an upload")
        for pid in (worker, *stopped):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises((OSError, http.client.HTTPException)):
            lost.result()
        assert not list(temporary.iterdir())
        wait_for(lambda: served.ask("/healthz").status == 200, "worker")
        assert upload() == 404


@pytest.mark.promise("service-old-ioncast")
@pytest.mark.both_databases
def test_a_database_of_a_newer_ioncast_ends_the_service_with_one_line(
    location: str, tmp_path: Path
) -> None:
    with opened_database(location) as database, transaction(database, write=True) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    # A state folder that knows the database must not change the answer.
    for _ in range(2):
        service = start(tmp_path, "--db", location)
        assert service.process.wait(PATIENCE_S) == 2
    lines = service.log.read_text().splitlines()
    assert len(lines) == 2
    assert all(
        "has version 9999, newer than this ioncast; upgrade ioncast" in each for each in lines
    )


@on_sqlite
def test_a_port_that_is_taken_is_one_line_before_anything_starts(
    running: Site, tmp_path: Path
) -> None:
    other = start(tmp_path, "--db", str(tmp_path / "other.sqlite"), port=running.served.port)
    assert other.process.wait(PATIENCE_S) == 2
    [line] = other.log.read_text().splitlines()
    assert line.startswith(f"ioncast: 127.0.0.1:{running.served.port}: the service cannot listen")
    assert not (tmp_path / "other.sqlite").exists()


def test_a_demonstration_imports_its_data_before_it_answers(tmp_path: Path) -> None:
    service = start(tmp_path, "--demo", environment={"TMPDIR": str(tmp_path)})
    try:
        service.wait_until_prepared(HACC)
        log = service.log.read_text()
        assert 0 < log.index("the demonstration's data are imported") < log.index("decisions on")
        assert service.ask(HACC).json["source"] == "history"
    finally:
        stop(service)


def test_a_demonstration_that_is_ended_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    folder, rest = tmp_path / "served", tmp_path / "tmp"
    folder.mkdir()
    rest.mkdir()
    service = start(folder, "--demo", environment={"TMPDIR": str(rest)})
    try:
        wait_for(lambda: "importing" in service.log.read_text(), "beginning")
        service.process.terminate()
        # On a busy machine the data may be complete by now; then the service ends with 0.
        assert service.process.wait(PATIENCE_S) in {128 + signal.SIGTERM, 0}
        assert list(rest.iterdir()) == []
    finally:
        service.process.kill()
