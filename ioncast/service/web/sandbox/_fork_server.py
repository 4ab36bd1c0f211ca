"""The program that forks a process for each task, and stops processes that take too long.

The module `child` starts this program and sends it tasks: each one a JSON object with
`memory_bytes` and `seconds`, and three file descriptors. The process reads the task from the
first descriptor and writes its result to the second. After its end the third gets a JSON object
with its exit `code`, the `signal` that killed it, `late` if it took too long, or the reason why it
`failed` to start. The modules that tasks need are imported once, so that a process costs only a
fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pickle
import resource
import select
import signal
import socket
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from ioncast_base.errors import IoncastError

MAX_REQUEST_BYTES = 4096
MAX_RESULT_BYTES = 64 << 20
# Exit codes that no library uses.
RETURNED, RAISED, OUT_OF_MEMORY, TOO_LARGE, BROKEN = range(50, 55)

_PR_SET_PDEATHSIG = 1
# Schedulers wait for decisions, so uploads take the time of processors that nothing else needs.
_NICENESS = 10
_MS = 1000


@dataclass
class _Running:
    """A process that works on a task, and the descriptor for the report of its end."""

    pid: int
    reply: int
    ends_at: float
    late: bool = False


def serve(descriptor: int) -> None:
    """Do tasks from a socket until its other end is closed."""
    # These signals end the worker, whose end closes the socket and so ends this program.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    libc = ctypes.CDLL(None)
    # Otherwise the garbage collector of each process would go through all imported modules, which
    # takes longer than most tasks.
    gc.freeze()
    running: dict[int, _Running] = {}
    poll = select.poll()
    with socket.socket(fileno=descriptor) as requests:
        poll.register(requests, select.POLLIN)
        try:
            while True:
                for ready, _ in poll.poll(_ms_to_next_end(running.values())):
                    if ready != requests.fileno():
                        poll.unregister(ready)
                        os.close(ready)
                        _finish(running.pop(ready))
                        continue
                    request, passed, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
                    if not request:
                        return
                    started = _start(json.loads(request), passed, requests, running, libc)
                    if started is not None:
                        ended = os.pidfd_open(started.pid)
                        running[ended] = started
                        poll.register(ended, select.POLLIN)
                _stop_late(running.values())
        finally:
            for one in running.values():
                _kill(one.pid)


def _ms_to_next_end(running: Iterable[_Running]) -> float | None:
    """Return the milliseconds until the next time limit ends; None without a running process."""
    ends = [one.ends_at for one in running if not one.late]
    return max(min(ends) - time.monotonic(), 0) * _MS + 1 if ends else None


def _stop_late(running: Iterable[_Running]) -> None:
    for one in running:
        if not one.late and one.ends_at <= time.monotonic():
            one.late = True
            _kill(one.pid)


def _kill(pid: int) -> None:
    """Kill a process and all that it started; until it is waited for, nothing reuses its id."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _start(
    asked: dict[str, int],
    passed: Sequence[int],
    requests: socket.socket,
    running: Mapping[int, _Running],
    libc: ctypes.CDLL,
) -> _Running | None:
    """Fork a process for a task; None if the system cannot."""
    task, result, reply = passed
    server = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(task)
        os.close(result)
        _say(reply, {"failed": error.strerror})
        return None
    if pid == 0:
        code = BROKEN
        try:
            # An open copy would hide from the other side that the server or a process has ended.
            requests.close()
            for descriptor in (reply, *running, *(one.reply for one in running.values())):
                os.close(descriptor)
            code = _work(libc, server, asked, task, result)
        finally:
            os._exit(code)
    os.close(task)
    os.close(result)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)
    return _Running(pid, reply, time.monotonic() + asked["seconds"])


def _finish(one: _Running) -> None:
    """Report how a process ended, and kill the processes that it left behind."""
    os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
    _kill(one.pid)
    _, status = os.waitpid(one.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if one.late:
        _say(one.reply, {"late": True})
    else:
        _say(one.reply, {"signal": -code} if code < 0 else {"code": code})


def _say(reply: int, report: Mapping[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(reply, json.dumps(report).encode())
    os.close(reply)


def _work(libc: ctypes.CDLL, server: int, asked: dict[str, int], task: int, result: int) -> int:
    """Do a task, in the forked process; it may crash."""
    try:
        os.setpgid(0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            return BROKEN
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit(resource.RLIMIT_AS, asked["memory_bytes"], asked["memory_bytes"])
        # If the server is too busy to stop the process in time, the kernel sends SIGXCPU.
        _limit(resource.RLIMIT_CPU, asked["seconds"] + 1, asked["seconds"] + 2)
        with os.fdopen(task, "rb") as file:
            function, args, kwargs = pickle.load(file)  # noqa: S301 - our worker's
        with os.fdopen(result, "wb") as file:
            try:
                outcome = function(*args, **kwargs)
                # The parts that a generator has made are there even if the next one kills it.
                parts = outcome if isinstance(outcome, Iterator) else [outcome]
                return RETURNED if all(_is_written(part, file) for part in parts) else TOO_LARGE
            except IoncastError as error:
                return RAISED if _is_written(error, file) else TOO_LARGE
    except MemoryError:
        return OUT_OF_MEMORY
    except BaseException:
        traceback.print_exc()
        return BROKEN


def _is_written(part: object, file: IO[bytes]) -> bool:
    """Write a part of a result; False if it is too large."""
    content = pickle.dumps(part)
    if len(content) > MAX_RESULT_BYTES:
        return False
    file.write(content)
    file.flush()
    return True


def _limit(kind: int, soft: int, hard: int) -> None:
    """Lower a limit of this process, unless it is lower already."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))
