"""Whatever a function does in its process, the caller survives and gets a result or an error."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ioncast.service.web.sandbox.child import ChildLimits, Children
from ioncast_base.errors import BusyError, DamagedLogError, InputError
from tests.support import misbehaving as job
from tests.support.command import killed_at_the_end

pytestmark = pytest.mark.slow

MIB = 1 << 20


@pytest.fixture
def children() -> Iterator[Children]:
    """Check after each test that the next call works and that no process is left."""
    made = Children(2, ChildLimits(memory_bytes=1024 * MIB, seconds=300))
    yield made
    assert made.run(job.doubled, 21) == 42
    _, server = made.run(job.ids)
    assert until(lambda: not processes_below(server))


@pytest.fixture
def impatient(children: Children) -> Iterator[Children]:
    """The time limit is a second, and the server runs already: a start could take so long."""
    children.run(job.ids)
    before, children.limits = children.limits, ChildLimits(seconds=1)
    yield children
    children.limits = before


def test_decisions_have_priority_over_readers_of_uploads(children: Children) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert children.run(os.getpriority, os.PRIO_PROCESS, 0) == min(own + 10, 19)
    assert children.run(os.sched_getscheduler, 0) == os.SCHED_BATCH


def processes_below(parent: int) -> list[int]:
    return [pid for pid, above in _parents() if above == parent]


def _parents() -> Iterator[tuple[int, int]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        yield int(path.parent.name), int(stat.rpartition(")")[2].split()[1])


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def until(true: Callable[[], bool], seconds: float = 120) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def pid_in(path: Path) -> int:
    # The file exists for a moment before it has its content.
    assert until(lambda: path.exists() and path.read_text(encoding="ascii") != "")
    return int(path.read_text(encoding="ascii"))


def test_a_function_runs_in_a_process_of_its_own(children: Children) -> None:
    first, _ = children.run(job.ids)
    second, _ = children.run(job.ids)
    assert len({first, second, os.getpid()}) == 3


def test_a_process_costs_no_more_than_a_fork_of_one_that_is_there(children: Children) -> None:
    assert len({children.run(job.ids)[1] for _ in range(20)}) == 1


def test_the_modules_of_models_are_there_already(children: Children) -> None:
    # To import them takes a second, thirty times as long as a prediction.
    loaded = children.run(job.modules)
    assert {"predictor.model.fitting", "scipy.optimize"} <= loaded
    # Fitting does without scikit-learn, whose import takes longer than all others together.
    assert "sklearn" not in loaded


def test_an_error_of_ours_comes_back_as_it_was(children: Children) -> None:
    with pytest.raises(DamagedLogError) as caught:
        children.run(job.refuse)
    assert str(caught.value) == "app.darshan: it is damaged; fetch it again"
    assert caught.value.title == "Damaged Darshan log"


@pytest.mark.parametrize(
    "function", [job.fail, job.raise_what_cannot_be_sent, job.return_what_cannot_be_sent]
)
def test_the_text_of_any_other_error_is_only_in_the_log(
    children: Children, function: Callable[[], object]
) -> None:
    with pytest.raises(RuntimeError) as caught:
        children.run(function)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGPWR]
)
def test_a_killed_process_is_unusable_input(children: Children, number: int) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        children.run(job.be_killed, number)
    assert caught.value.http_status == 422


def test_a_process_that_reads_address_0_is_unusable_input(children: Children) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        children.run(job.read_address_0)


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_process_that_a_library_ends_is_unusable_input(children: Children, code: int) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        children.run(job.end_at_once, code)


@pytest.mark.parametrize("function", [job.loop, job.loop_deaf])
def test_a_task_that_takes_too_long_is_stopped(
    impatient: Children, function: Callable[[], object]
) -> None:
    with pytest.raises(InputError, match="more than 1 s and was stopped") as caught:
        impatient.run(function)
    assert caught.value.http_status == 422


def test_the_kernel_ends_what_a_busy_worker_cannot_stop_in_time(children: Children) -> None:
    assert children.run(resource.getrlimit, resource.RLIMIT_CPU) == (301, 302)


def test_a_function_that_takes_too_long_ends_even_if_the_server_is_stopped(
    children: Children, tmp_path: Path
) -> None:
    _, server = children.run(job.ids)
    path = tmp_path / "pid"
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(children.run_within, 2, job.slow, str(path), 600.0)
        pid = pid_in(path)
        os.kill(server, signal.SIGSTOP)
        try:
            with pytest.raises(InputError, match="more than 2 s and was stopped"):
                slow.result()
            assert until(lambda: not lives(pid))
        finally:
            os.kill(server, signal.SIGCONT)


def test_a_stopped_server_is_replaced(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = children.run(job.ids)
    os.kill(server, signal.SIGSTOP)
    # Another one does not start in this time either.
    with monkeypatch.context() as patched:
        patched.setattr("ioncast.service.web.sandbox.child._START_S", 0.001)
        with pytest.raises(BusyError, match="does not start"):
            children.run(job.doubled, 4)
    assert not lives(server)
    assert children.run(job.doubled, 4) == 8


def test_a_task_that_takes_too_much_memory_is_stopped(children: Children) -> None:
    with pytest.raises(InputError, match="more than 1024 MiB of memory and was stopped"):
        children.run(job.take_memory)


def test_a_task_that_breaks_the_interpreter_is_stopped(children: Children) -> None:
    with pytest.raises((InputError, RuntimeError)):
        children.run(job.blow_the_stack)


def test_a_large_result_arrives_and_one_that_is_too_large_does_not(children: Children) -> None:
    assert len(children.run(job.return_bytes, 40 * MIB)) == 40 * MIB
    with pytest.raises(InputError, match="more than 64 MiB"):
        children.run(job.return_bytes, 64 * MIB)


def test_processes_of_a_task_end_with_it(children: Children, tmp_path: Path) -> None:
    children.run(job.leave_a_process, str(tmp_path / "pid"))
    assert until(lambda: not lives(pid_in(tmp_path / "pid")))


def test_a_process_has_none_of_the_sockets_of_the_one_that_asked(children: Children) -> None:
    _, server = children.run(job.ids)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        os.kill(server, signal.SIGKILL)
        assert not [name for name in children.run(job.open_files) if "socket" in name]
    assert children.run(job.ids)[1] != server


def test_some_wait_for_others_and_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioncast.service.web.sandbox.child._PATIENCE_S", 60)
    children = Children(1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(children.run, job.slow_until, str(tmp_path / "a"), str(tmp_path / "go"))
        pid_in(tmp_path / "a")
        second = pool.submit(children.run, job.slow, str(tmp_path / "b"), 0.0)
        assert until(lambda: children._queue._value == 0)
        with pytest.raises(BusyError) as caught:
            children.run(job.doubled, 1)
        assert not (tmp_path / "b").exists()
        (tmp_path / "go").touch()
        assert [first.result(), second.result()] == [str(tmp_path / n) for n in "ab"]
    assert caught.value.http_status == 503


def test_nobody_waits_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioncast.service.web.sandbox.child._PATIENCE_S", 0.1)
    children = Children(1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(children.run, job.slow_until, str(tmp_path / "a"), str(tmp_path / "go"))
        pid_in(tmp_path / "a")
        with pytest.raises(BusyError):
            children.run(job.doubled, 1)
        (tmp_path / "go").touch()
        assert slow.result() == str(tmp_path / "a")


def test_many_threads_get_each_their_own_answer() -> None:
    children = Children(8)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: children.run(job.doubled, n), range(64)))
    assert found == [2 * n for n in range(64)]


def test_a_function_may_have_a_shorter_time_limit(children: Children, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 1 s"):
        children.run_within(1, job.slow, str(tmp_path / "pid"), 600.0)
    assert children.run_within(10_000, job.doubled, 3) == 6


@pytest.mark.parametrize(
    ("end", "said"),
    [("late", "more than 1 s"), ("killed", "crashed"), ("damaged", "torn"), ("well", None)],
)
def test_a_part_that_is_there_survives_the_next_one(
    children: Children, end: str, said: str | None
) -> None:
    first, second = children.run_parts((60, 1), job.parts, end)
    assert first == "first"
    if said is None:
        assert second == "second"
        return
    assert isinstance(second, InputError)
    assert said in str(second)


def test_a_dead_process_does_not_harm_others(children: Children, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(children.run, job.slow, str(tmp_path / "pid"), 1.0)
        pid_in(tmp_path / "pid")
        for number in (signal.SIGKILL, signal.SIGSEGV):
            with pytest.raises(InputError):
                children.run(job.be_killed, number)
        assert slow.result() == str(tmp_path / "pid")


def test_a_server_that_was_killed_is_started_again(children: Children) -> None:
    _, server = children.run(job.ids)
    os.kill(server, signal.SIGKILL)
    assert children.run(job.doubled, 4) == 8
    _, other = children.run(job.ids)
    assert other != server


def test_a_task_of_a_killed_server_goes_on(children: Children, tmp_path: Path) -> None:
    _, server = children.run(job.ids)
    path, go = tmp_path / "pid", tmp_path / "go"
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(children.run, job.slow_until, str(path), str(go))
        first = pid_in(path)
        os.kill(server, signal.SIGKILL)
        assert children.run(job.ids)[1] != server
        go.touch()
        assert slow.result() == str(path)
    assert until(lambda: not lives(first))


def test_an_interrupt_at_the_keyboard_is_not_for_the_server(children: Children) -> None:
    _, server = children.run(job.ids)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(server, number)
    assert children.run(job.ids)[1] == server


WORKER = """
import sys
from ioncast.service.web.sandbox.child import Children
from tests.support import misbehaving as job
children = Children(1)
print(*children.run(job.ids), flush=True)
children.run(job.slow, sys.argv[1], 600.0)
"""


def test_a_killed_worker_leaves_no_process_behind(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with killed_at_the_end(
        [sys.executable, "-c", WORKER, path],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[5],
    ) as worker:
        assert worker.stdout is not None
        _, server = map(int, worker.stdout.readline().split())
        child = pid_in(path)
        assert lives(server)
        assert lives(child)
        worker.send_signal(signal.SIGKILL)
    assert until(lambda: not lives(server))
    assert until(lambda: not lives(child))
