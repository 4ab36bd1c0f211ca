"""A process of the service that a signal stopped is replaced, and nothing else is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import Asking, Served, asked_meanwhile, running, wait_for

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
# Longer than a stopped process may stand still.
STOOD_STILL_S = 6.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, demo_on_sqlite: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("stopped")
    shutil.copy(demo_on_sqlite, folder / "bench.sqlite")
    with running(folder, "--db", str(folder / "bench.sqlite")) as service:
        service.wait_until_prepared(HACC)
        yield service


def everything(served: Served) -> set[int]:
    """Wait until all processes run, and list them."""
    return {served.web(), *served.all_deciders(), served.keeper()}


def assert_replaced(served: Served, *victims: int) -> None:
    wait_for(lambda: not everything(served) & {*victims}, "other processes")


def assert_logged(served: Served, victim: int) -> None:
    line = f"process {victim} was stopped by a signal and is replaced\n"
    assert served.log.read_text().count(line) == 1


@pytest.mark.promise("service-process-stopped")
@pytest.mark.parametrize("kind", ["web", "keeper"])
def test_a_stopped_process_is_replaced_and_nobody_waits_for_it(served: Served, kind: str) -> None:
    everything(served)
    victim = served.keeper() if kind == "keeper" else served.web()
    with asked_meanwhile(served, HACC):
        os.kill(victim, signal.SIGSTOP)
        assert_replaced(served, victim)
    assert_logged(served, victim)


@pytest.mark.promise("service-process-stopped")
def test_a_stopped_web_process_whose_parent_is_killed_keeps_no_address(served: Served) -> None:
    worker = served.web()
    # pid (name) state parent …
    parent = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(worker, signal.SIGSTOP)
    os.kill(int(parent), signal.SIGKILL)
    assert_replaced(served, worker)
    wait_for(lambda: served.ask("/healthz", timeout_s=2).status == 200, "answer")


@pytest.mark.promise("service-process-stopped")
def test_a_stopped_process_for_decisions_is_replaced(served: Served) -> None:
    victim = served.all_deciders()[0]
    with Asking(served.decide, HACC, threads=2) as asked:
        os.kill(victim, signal.SIGSTOP)
        assert_replaced(served, victim)
        asked.wait_until_answered()
    assert_logged(served, victim)
    # The victim may have accepted a question of each thread.
    assert len(asked.refused) <= 2, asked.refused
    assert not asked.unprepared, asked.unprepared


@pytest.mark.promise("service-process-stopped")
def test_all_processes_are_replaced_if_all_of_them_are_stopped(served: Served) -> None:
    victims = everything(served)
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)
    assert_replaced(served, *victims)
    wait_for(lambda: served.ask("/readyz", timeout_s=2).json["keeper"] == "ok", "keeper")
    assert served.decide(HACC).json["source"] == "history"


@pytest.mark.promise("service-process-stopped")
def test_nothing_is_replaced_after_the_whole_service_stood_still(served: Served) -> None:
    before = everything(served)
    with served.stopped(before):
        time.sleep(STOOD_STILL_S)
    # The service looks at all processes before it starts another one.
    for victim in served.all_deciders():
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda victim=victim: victim not in everything(served), "another process")
        before -= {victim}
    assert everything(served) > before


@pytest.mark.promise("service-process-stopped")
def test_a_keeper_that_waits_for_the_database_is_not_replaced(served: Served) -> None:
    keeper = served.keeper()
    location = served.state.parent / "bench.sqlite"
    connection = sqlite3.connect(location, isolation_level=None)
    with contextlib.closing(connection):
        connection.execute("BEGIN EXCLUSIVE")
        wait_for(lambda: served.ask("/readyz").json["database"] != "ok", "keeper that waits")
        time.sleep(STOOD_STILL_S)
    wait_for(lambda: served.ask("/readyz").json["database"] == "ok", "database")
    assert served.keeper() == keeper
