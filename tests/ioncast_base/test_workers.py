"""Processes that work on many items."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support.command import killed_at_the_end

PROJECT = Path(__file__).resolve().parents[2]
PREAMBLE = """
import os, signal, sys, time
from ioncast_base.workers import Killed, results_in_order, usable_cores
"""


def program(text: str) -> list[str]:
    return [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(text)]


def said(text: str, **options: object) -> str:
    """Output of a program; the processes must be forked by a process without threads."""
    done = subprocess.run(
        program(text), capture_output=True, text=True, cwd=PROJECT, check=True, **options
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("processes", [1, 2, 7])
def test_results_come_in_the_order_of_the_items(processes: int) -> None:
    # The first items take longest, so that later ones are ready before them.
    text = f"""
    def work(item):
        time.sleep(0.001 * (item < 5) * (5 - item))
        return item * item
    print(list(results_in_order(work, range(300), {processes})) == [n * n for n in range(300)])
    """
    assert said(text) == "True\n"


def test_without_items_no_process_starts() -> None:
    assert said("print(list(results_in_order(abs, [], 4)))") == "[]\n"


@pytest.mark.parametrize(
    ("end", "result"), [("os.kill(os.getpid(), 9)", "9"), ("os._exit(3)", "None")]
)
def test_a_killed_process_costs_only_the_item_that_it_worked_on(end: str, result: str) -> None:
    text = f"""
    def work(item):
        if item in (0, 7, 8, 99):
            {end}
        return item
    found = list(results_in_order(work, range(100), 3))
    print([n for n in range(100) if found[n] != n])
    print(all(found[n] == Killed({result}) for n in (0, 7, 8, 99)))
    """
    assert said(text) == "[0, 7, 8, 99]\nTrue\n"


def test_a_process_that_is_killed_in_the_middle_of_a_result_costs_only_its_item(
    tmp_path: Path,
) -> None:
    # Nobody reads the result before its process is dead, and a pipe holds only a part of it.
    text = f"""
    import pathlib
    place = pathlib.Path({str(tmp_path)!r}, "pid")
    def work(item):
        if item == 4:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            place.with_suffix(".new").write_text(str(os.getpid()))
            place.with_suffix(".new").rename(place)
            return bytes(1 << 24)
        return item
    results = results_in_order(work, range(9), 2)
    found = [next(results) for _ in range(4)]
    while not place.exists():
        time.sleep(0.01)
    os.waitid(os.P_PID, int(place.read_text()), os.WEXITED | os.WNOWAIT)
    found += results
    print([n for n in range(9) if found[n] != n], found[4] == Killed(signal.SIGALRM))
    """
    assert said(text) == "[4] True\n"


def test_few_results_wait_for_a_slow_one(tmp_path: Path) -> None:
    text = f"""
    import pathlib
    def work(item):
        if item == 0:
            time.sleep(1)
        pathlib.Path({str(tmp_path)!r}, str(item)).touch()
        return item
    next(results_in_order(work, range(1000), 2))
    """
    assert said(text) == ""
    assert len(list(tmp_path.iterdir())) < 100


def test_large_results_do_not_block() -> None:
    text = """
    def work(item):
        return bytes(5_000_000)
    print(sum(map(len, results_in_order(work, range(20), 2))))
    """
    assert said(text) == "100000000\n"


def test_text_that_waits_to_be_written_is_written_once() -> None:
    assert said("print('before')\nprint(list(results_in_order(abs, [-1, 2], 2)))") == (
        "before\n[1, 2]\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_one_that_started_it(number: int) -> None:
    text = """
    def work(item):
        if item < 3:
            return os.getpid()
        time.sleep(0.1)
    for n, result in enumerate(results_in_order(work, range(100_000), 3)):
        if n < 3:
            print(result, flush=True)
    """
    with killed_at_the_end(
        program(text),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        start_new_session=True,
    ) as started:
        pids = {int(started.stdout.readline()) for _ in range(3)}
        # A terminal sends Ctrl-C to all processes of the group.
        if number == signal.SIGINT:
            os.killpg(started.pid, number)
        else:
            started.send_signal(number)
        _, errors = started.communicate(timeout=300)
    assert started.returncode == -number
    assert errors.count(b"Traceback") == (number == signal.SIGINT)
    for pid in pids:
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)


def test_a_system_that_starts_no_process_is_an_error_with_a_remedy() -> None:
    text = """
    import multiprocessing.popen_fork
    def refused():
        raise BlockingIOError(11, "Resource temporarily unavailable")
    os.fork = refused
    from ioncast_base.errors import BusyError
    try:
        list(results_in_order(abs, [1], 1))
    except BusyError as error:
        print(error)
    """
    assert said(text) == (
        "the system starts no process: Resource temporarily unavailable;"
        " end other programs, or raise the limit (`ulimit -u`)\n"
    )


def test_a_process_uses_the_cores_that_it_may_use() -> None:
    assert (
        said("os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\nprint(usable_cores())")
        == "1\n"
    )
