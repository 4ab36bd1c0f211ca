"""Two processes that only answer schedulers: one answers while the other one cannot."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import Asking, Served, running

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"
QUESTIONS = 20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, demo_on_sqlite: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("two")
    shutil.copy(demo_on_sqlite, folder / "bench.sqlite")
    with running(folder, "--db", str(folder / "bench.sqlite")) as service:
        service.wait_until_prepared(HACC)
        yield service


@pytest.mark.promise("service-process-for-decisions")
def test_each_answers_while_the_other_one_is_stopped(served: Served) -> None:
    before = counted(served)
    for each in served.all_deciders():
        with served.alone(each):
            answers = [served.decide(HACC) for _ in range(QUESTIONS)]
        assert {answer.json["source"] for answer in answers} == {"history"}
    assert counted(served) == before + 2 * QUESTIONS


def counted(served: Served) -> float:
    """The number of decisions that all processes have counted."""
    lines = served.ask("/metrics").body.decode().splitlines()
    found = [line for line in lines if line.startswith("ioncast_decisions_total{")]
    return sum(float(line.split()[-1]) for line in found)


@pytest.mark.promise("service-process-for-decisions")
def test_one_answers_at_once_while_the_other_one_starts_again(served: Served) -> None:
    victim, other = served.all_deciders()
    # No process starts while the one that starts them is stopped.
    os.kill(served.process.pid, signal.SIGSTOP)
    try:
        os.kill(victim, signal.SIGKILL)
        with Asking(served.decide, HACC, threads=2) as asked:
            for _ in range(QUESTIONS):
                asked.wait_until_answered()
    finally:
        os.kill(served.process.pid, signal.SIGCONT)
    assert not asked.unprepared, asked.unprepared
    # The victim may have accepted questions before its end.
    assert len(asked.refused) <= 2, asked.refused
    assert other in served.all_deciders()


@pytest.mark.promise("service-no-free-threads")
def test_all_other_processes_leave_them_the_processors(served: Served) -> None:
    def niceness(pid: int) -> int:
        return os.getpriority(os.PRIO_PROCESS, pid)

    deciders = [niceness(pid) for pid in served.all_deciders()]
    others = [niceness(pid) for pid in [served.web(), served.keeper()]]
    assert max(deciders) < min(others)
