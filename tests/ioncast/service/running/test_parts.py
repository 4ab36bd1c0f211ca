"""The parts of the service as systemd starts them: each ends and starts again by itself."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from ioncast.service.decide.prepared import prepared_file
from ioncast.service.running.command import PARTS
from tests.support.disks import remount, small_disk
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


def is_closed(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.promise("service-part")
def test_decisions_continue_while_other_parts_are_killed_and_start_again(
    parts: dict[str, Served], folder: Path
) -> None:
    decisions, web = parts["decisions"], parts["web"]
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
    text = parts["web"].ask("/metrics").body.decode()
    [told] = [line for line in text.splitlines() if 'decisions_total{source="history"}' in line]
    assert float(told.split()[1]) >= len(asked.numbers)


@pytest.mark.promise("service-part")
def test_pages_continue_while_decisions_are_killed_and_start_again(
    parts: dict[str, Served], folder: Path
) -> None:
    everything = parts["decisions"].all_deciders()
    kill(parts["decisions"])
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everything), "end of all")
    assert parts["web"].ask("/readyz").json["keeper"] == "ok"
    parts["decisions"] = start_part(folder, "decisions", parts["web"].port)
    wait_for(
        lambda: parts["decisions"].decide(HACC, timeout_s=2).json["source"] == "history", "answer"
    )
    # The part was told no database, whose address may contain a password.
    [process, _] = parts["decisions"].all_deciders()
    environment = Path(f"/proc/{process}/environ").read_bytes()
    assert b"IONCAST_DB" not in environment
    assert str(folder / "bench.sqlite").encode() not in environment


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


@pytest.mark.root
@pytest.mark.promise("service-state-not-writable")
def test_parts_share_answers_in_memory_while_the_state_folder_cannot_be_written(
    tmp_path: Path, demo_on_sqlite: Path
) -> None:
    shutil.copy(demo_on_sqlite, tmp_path / "bench.sqlite")
    (tmp_path / "run").mkdir()
    with small_disk(tmp_path / "state") as state, ExitStack() as stack:
        remount(state, "ro")
        port = free_port()
        background, decisions = (
            start_part(tmp_path, part, port, RUNTIME_DIRECTORY=str(tmp_path / "run"))
            for part in ("background", "decisions")
        )
        stack.callback(stop, background)
        stack.callback(stop, decisions)
        decisions.wait_until_prepared(HACC)
        assert prepared_file(tmp_path / "run" / "state").exists()
