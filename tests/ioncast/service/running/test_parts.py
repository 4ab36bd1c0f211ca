"""The parts of the service as systemd starts them: each ends and starts again by itself."""

from __future__ import annotations

import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.decide.prepared import prepared_file
from ioncast.service.running.command import PARTS
from ioncast.service.store.paused_systems import pause_decisions
from tests.support.disks import fill, remount, small_disk
from tests.support.serving import (
    PATIENCE_S,
    Served,
    asked_meanwhile,
    free_port,
    start,
    stop,
    wait_for,
)

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"


def start_part(folder: Path, part: str, port: int, **environment: str) -> Served:
    told = ("--part", part, "--db", str(folder / "bench.sqlite"))
    return start(folder, *told, port=port, environment=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def parts(folder: Path, demo_on_sqlite: Path) -> Iterator[dict[str, Served]]:
    """All parts; a test that kills a part starts it again for the next test."""
    shutil.copy(demo_on_sqlite, folder / "bench.sqlite")
    port, started = free_port(), {}
    with ExitStack() as stack:
        for part in PARTS:
            started[part] = start_part(folder, part, port)
            stack.callback(lambda part=part: stop(started[part]))
        wait_for(lambda: started["web"].ask("/readyz", timeout_s=2).status == 200, "web")
        started["decisions"].wait_until_prepared(HACC)
        yield started


def kill(part: Served) -> None:
    part.process.kill()
    part.process.wait()


def decided(web: Served) -> float:
    """All decisions from the history, as the metrics count them."""
    lines = web.ask("/metrics").body.decode().splitlines()
    [told] = [
        line for line in lines if line.startswith('ioncast_decisions_total{source="history"}')
    ]
    return float(told.split()[1])


def is_closed(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.promise("service-part")
def test_decisions_continue_while_other_parts_are_killed_and_start_again(
    parts: dict[str, Served], folder: Path
) -> None:
    decisions, web = parts["decisions"], parts["web"]
    wait_for(lambda: web.ask(HACC).json["source"] == "history", "answer")
    before = decided(web)
    with asked_meanwhile(decisions, HACC) as asked:
        for part in ("web", "background"):
            kill(parts[part])
        wait_for(partial(is_closed, web.port), "end of the web process")
        asked.wait_until_answered()
        for part in ("web", "background"):
            parts[part] = start_part(folder, part, web.port)
        parts["web"].wait_until_ready()
        number = decisions.decide(HACC).json["decision_id"]
        wait_for(
            lambda: parts["web"].ask(f"/v1/decisions/{number}", timeout_s=2).status == 200,
            "stored decision",
        )
    # Prometheus would take a smaller number for a new beginning, and add all of it once more.
    assert decided(parts["web"]) >= before + len(asked.numbers)


@pytest.mark.promise("service-part")
def test_pages_continue_while_decisions_are_killed_and_start_again(
    parts: dict[str, Served], folder: Path
) -> None:
    everything = parts["decisions"].all_deciders()
    before = decided(parts["web"])
    kill(parts["decisions"])
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everything), "end of all")
    assert parts["web"].ask("/readyz").json["keeper"] == "ok"
    parts["decisions"] = start_part(folder, "decisions", parts["web"].port)
    wait_for(
        lambda: parts["decisions"].decide(HACC, timeout_s=2).json["source"] == "history", "answer"
    )
    assert decided(parts["web"]) > before
    # The part was told no database, whose address may contain a password.
    [process, _] = parts["decisions"].all_deciders()
    environment = Path(f"/proc/{process}/environ").read_bytes()
    assert b"IONCAST_DB" not in environment
    assert str(folder / "bench.sqlite").encode() not in environment


@pytest.mark.promise("service-old-ioncast")
def test_decisions_continue_after_a_newer_ioncast_upgraded_the_database(
    parts: dict[str, Served], folder: Path
) -> None:
    database = folder / "bench.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        [(version,)] = connection.execute("SELECT version_num FROM alembic_version")
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
        kill(parts["background"])
        parts["background"] = start_part(folder, "background", parts["web"].port)
        assert parts["background"].process.wait(PATIENCE_S) == 2
        assert "9999, newer than this ioncast" in parts["background"].log.read_text()
        assert parts["web"].ask("/v1/systems").status == 503
        assert parts["decisions"].decide(HACC).json["source"] == "history"
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
        connection.commit()
    parts["background"] = start_part(folder, "background", parts["web"].port)


def test_a_whole_service_does_not_start_beside_its_parts(
    parts: dict[str, Served], folder: Path
) -> None:
    # Nor a second keeper, which would do all work twice.
    for told in ((), ("--part", "background")):
        other = start(folder, "--db", str(folder / "bench.sqlite"), *told)
        before = other.log.read_text()
        assert other.process.wait(PATIENCE_S) == 2
        said = other.log.read_text().removeprefix(before)
        assert "another service uses this state folder" in said
    assert parts["decisions"].decide(HACC).status == 200


@pytest.fixture
def small(tmp_path: Path, demo_on_sqlite: Path) -> Iterator[SmallService]:
    """The parts that answer and prepare, with a state folder on a small disk of its own."""
    shutil.copy(demo_on_sqlite, tmp_path / "bench.sqlite")
    (tmp_path / "run").mkdir()
    with small_disk(tmp_path / "state") as state:
        service = SmallService(tmp_path, state)
        yield service
        for part in service.parts.values():
            stop(part)


class SmallService:
    """Parts of a service and their folders; `run` is the one in memory that systemd makes."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder, self.state, self.run = folder, state, folder / "run"
        self.parts: dict[str, Served] = {}
        self._port = free_port()

    def begin(self, *parts: str) -> None:
        """Start parts; one that runs is killed before."""
        for part in parts:
            self.kill(part)
            told = str(self.run)
            self.parts[part] = start_part(self.folder, part, self._port, RUNTIME_DIRECTORY=told)

    def kill(self, part: str) -> None:
        if part in self.parts:
            kill(self.parts[part])

    def wait_for_history(self) -> None:
        self.parts["decisions"].wait_until_prepared(HACC)

    def wait_until_a_pause_counts(self) -> None:
        database = opened_database(str(self.folder / "bench.sqlite"))
        with database as opened, transaction(opened, write=True) as connection:
            pause_decisions(connection, "testbed", "alice")
        for each in self.parts["decisions"].all_deciders():
            with self.parts["decisions"].alone(each):
                wait_for(
                    lambda: "paused by alice" in self.parts["decisions"].decide(HACC).json["why"],
                    "pause",
                )


@pytest.mark.root
@pytest.mark.promise("service-state-not-writable")
def test_parts_share_answers_in_memory_while_the_state_folder_cannot_be_written(
    small: SmallService,
) -> None:
    remount(small.state, "ro")
    small.begin("background", "decisions")
    small.wait_for_history()
    assert prepared_file(small.run / "state").exists()
    small.begin("background")
    log = small.parts["background"].log
    # Each keeper says that it uses the folder in memory.
    wait_for(lambda: log.read_text().count("cannot be written") == 2, "another keeper")
    remount(small.state, "rw")
    wait_for(lambda: not (small.run / "state").exists(), "return to the state folder")
    small.wait_until_a_pause_counts()
    assert prepared_file(small.state).exists()
    assert not [path for path in small.run.iterdir() if path.is_dir()]


@pytest.mark.root
@pytest.mark.promise("service-disk-full")
def test_decisions_that_start_on_a_full_disk_follow_the_keeper(small: SmallService) -> None:
    small.begin("background", "decisions")
    small.wait_for_history()
    fill(small.state)
    small.begin("decisions")
    small.wait_for_history()
    small.kill("background")
    small.begin("decisions")
    small.wait_for_history()
    (small.state / "full").unlink()
    small.begin("background")
    small.wait_until_a_pause_counts()
    assert not (small.run / "state").exists()
