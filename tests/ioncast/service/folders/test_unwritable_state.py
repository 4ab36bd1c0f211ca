"""A service whose state folder cannot be written decides from the database, and says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ioncast.service.folders.usable_state import usable_state
from tests.support.disks import fill, remount, small_disk
from tests.support.serving import (
    PATIENCE_S,
    Answer,
    Served,
    asked_meanwhile,
    running,
    start,
    wait_for,
)

pytestmark = [pytest.mark.root, pytest.mark.serving]

QUESTION = (
    "/v1/decisions?system=testbed&user=demo&executable=hacc_io_write_posix_fpp&nodes=8&tasks=16"
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "state") as folder:
        yield folder


@pytest.fixture
def database(demo_on_sqlite: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_on_sqlite, tmp_path / "demo.sqlite"))


def wait_for_history(served: Served) -> None:
    """Wait until all processes decide from the history."""
    wait_for(partial(has_history, served.ask), "prepared answer")
    for process in served.all_deciders():
        with served.alone(process):
            wait_for(partial(has_history, served.decide), "prepared answer")


def has_history(ask: Callable[[str], Answer]) -> bool:
    return bool(ask(QUESTION).json["source"] == "history")


def wait_for_state(served: Served, expected: str) -> None:
    wait_for(lambda: served.ask("/readyz").json["state_folder"] == expected, expected)


def make_unwritable(state: Path, how: str) -> None:
    if how == "full":
        fill(state)
    else:
        remount(state, "ro")


def make_writable(state: Path, how: str) -> None:
    if how == "full":
        (state / "full").unlink()
        (state / "fuller").unlink()
    else:
        remount(state, "rw")


@pytest.mark.promise("service-state-not-writable")
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_service_starts_without_its_state_folder_and_records_again_when_it_can(
    state: Path, database: Path, tmp_path: Path, how: str
) -> None:
    make_unwritable(state, how)
    with running(tmp_path, "--db", str(database)) as served:
        wait_for_history(served)
        wait_for_state(served, "unwritable")
        with asked_meanwhile(served, QUESTION):
            text = served.ask("/metrics").body.decode()
            assert "ioncast_state_writable 0.0" in text
            wait_for(lambda: unrecorded(served) > 0, "a lost decision")
            make_writable(state, how)
            number = served.decide(QUESTION).json["decision_id"]
            wait_for(lambda: served.ask(f"/v1/decisions/{number}").status == 200, "the decision")
            wait_for_state(served, "ok")
    [line] = [each for each in served.log.read_text().splitlines() if "warning: " in each]
    assert line.startswith(f"ioncast: warning: the state folder {state} cannot be written (")


def test_a_folder_in_memory_that_a_killed_service_left_goes_at_the_next_start() -> None:
    # Nothing can be written there.
    state = f"/proc/{os.getpid()}/state"
    killed = usable_state(state)
    left = Path(killed.__enter__())
    assert left.is_dir()
    with usable_state(state) as made:
        assert made != str(left)
        assert not left.exists()
    assert not Path(made).exists()


def unrecorded(served: Served) -> float:
    lines = served.ask("/metrics").body.decode().splitlines()
    [lost] = [line for line in lines if line.startswith("ioncast_unrecorded_decisions_total ")]
    return float(lost.split()[1])


@pytest.mark.promise("service-state-not-writable")
def test_without_the_database_too_the_last_answers_of_the_state_folder_decide_in_one_service(
    state: Path, database: Path, tmp_path: Path
) -> None:
    with running(tmp_path, "--db", str(database)) as served:
        wait_for_history(served)
    remount(state, "ro")
    database.rename(tmp_path / "away.sqlite")
    with running(tmp_path, "--db", str(database)) as served:
        wait_for_history(served)
        wait_for(lambda: served.ask("/readyz").json["database"] == "unavailable", "notice")
        wait_for_history(served)
        assert_no_other_service_starts(served, database, tmp_path / "other")
    # The note in the state folder says that there was a database.
    assert not database.exists()


def assert_no_other_service_starts(served: Served, database: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "state").symlink_to(served.state)
    other = start(folder, "--db", str(database))
    assert other.process.wait(PATIENCE_S) == 2
    assert "another service uses this state folder" in other.log.read_text()
