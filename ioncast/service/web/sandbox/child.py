"""Runs functions on uploads in disposable processes with limits on memory and time.

A small server imports once what tasks need and forks a process for each one, so that a process
costs only a fork. multiprocessing's own fork server has its socket in the folder for temporary
files: a full disk or a long name keeps it from starting, and a kill leaves the socket there.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fcntl import F_SETFL, F_SETOWN, F_SETSIG, fcntl
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle, send_handle
from time import monotonic
from typing import Any, ParamSpec, TypeVar, cast

from ioncast_base.errors import BusyError, InputError, IoncastError

_T = TypeVar("_T")
_P = ParamSpec("_P")

MIB = 1 << 20
_MAX_RESULT_BYTES = 64 * MIB
# Memory for the message that a task took too much memory.
_RESERVE_BYTES = 64 * MIB
# How long a task waits until another one ends.
_PATIENCE_S = 5.0
# A server that forks nothing for so long is stopped (SIGSTOP); its start takes a second or two.
_START_S, _STARTS = 60.0, 2
# Schedulers wait for decisions, so uploads take the time of processors that nothing else needs.
_NICENESS = 10
# The program has the worker's module path. It imports the modules that tasks need, so that each
# fork has them, also those that libraries import when they are first used, and reads the checks.
_PROGRAM = """
import contextlib, sys
descriptor, *sys.path = sys.argv[1:]
import ioncast.service.web.api.advice, ioncast.service.web.api.allocations
import ioncast.service.web.api.benchmarks, ioncast.service.web.api.predictions
import numpy.ma, predictor.model.fitting
import sqlalchemy.dialects.postgresql, sqlalchemy.dialects.sqlite
from ioncast.insights.checks.registry import all_checks
all_checks()
with contextlib.suppress(ImportError):
    import psycopg
from ioncast.service.web.sandbox.child import serve
serve(int(descriptor))
"""
# A library's threads would not survive a fork, and each one takes address space.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class TooMuchWorkError(InputError):
    """A function took too much time or memory, or its result is too large."""


@dataclass(frozen=True)
class ChildLimits:
    """Limits of one task: bytes of address space, and whole seconds."""

    memory_bytes: int = 2 << 30
    seconds: int = 60


class Children:
    """Runs functions in disposable processes; several threads may use it.

    The first function starts the server, and a function after its crash starts another. All
    processes end when this process ends.

    Parameters
    ----------
    at_once : int
        The number of functions that run at the same time. As many more wait for a few seconds, and
        others fail at once, because uploads must not block all threads of a worker.
    """

    def __init__(self, at_once: int, limits: ChildLimits | None = None) -> None:
        self.limits = limits or ChildLimits()
        self._places = threading.BoundedSemaphore(at_once)
        self._queue = threading.BoundedSemaphore(2 * at_once)

    def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function in a separate process.

        Parameters
        ----------
        function : callable
            A function at the top level of a module.
        *args, **kwargs : object
            Arguments that pickle can write. It must be able to write the result as well.
        """
        return self.run_within(self.limits.seconds, function, *args, **kwargs)

    def run_within(
        self, seconds: int, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Call a function as `run` does, with a shorter time limit if `seconds` is shorter."""
        [outcome] = self._parts([seconds], (function, args, kwargs))
        if isinstance(outcome, Exception):
            raise outcome
        return cast(_T, outcome)

    def run_parts(
        self, seconds: Sequence[int], function: Callable[..., Iterator[Any]], *args: object
    ) -> list[Any]:
        """Call a function that yields the parts of a result, each within its seconds.

        A part that is not there is an error; those before it are as they were made.
        """
        return self._parts(seconds, (function, args, {}))

    def _parts(self, seconds: Sequence[int], task: tuple[object, ...]) -> list[Any]:
        seconds = [min(each, self.limits.seconds) for each in seconds]
        given = pickle.dumps((replace(self.limits, seconds=sum(seconds)), *task))
        with _held(self._queue, 0), _held(self._places, _PATIENCE_S), _SERVER.forked() as pipes:
            return _received(*pipes, given, seconds)


class _Server:
    """The program that forks a process for each task; it ends when its connection is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None

    @contextmanager
    def forked(self) -> Iterator[tuple[Connection, Connection]]:
        """Let a process begin, and kill it and all that it started at the end of the block."""
        try:
            tasks, results, pid = self._begun()
        except (OSError, EOFError) as error:
            raise BusyError("the process that reads uploads does not start") from error
        with tasks, results:
            try:
                yield tasks, results
            finally:
                # Unless it crashed, the process waits for this, so no other one has its number.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    def _begun(self) -> tuple[Connection, Connection, int]:
        for _ in range(_STARTS):
            given, tasks = Pipe(duplex=False)
            results, made = Pipe(duplex=False)
            with self._lock, given, made:
                process, requests = self._running()
                with suppress(OSError):
                    for each in (given, made):
                        send_handle(requests, each.fileno(), process.pid)
            with suppress(EOFError):
                if results.poll(_START_S):
                    return tasks, results, results.recv()
            process.kill()
            process.wait()
        raise EOFError

    def _running(self) -> tuple[subprocess.Popen[bytes], Connection]:
        if self._process is None or self._requests is None or self._process.poll() is not None:
            self._requests, theirs = Pipe()
            with theirs:
                descriptor = theirs.fileno()
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
                    [sys.executable, "-I", "-c", _PROGRAM, str(descriptor), *sys.path],
                    pass_fds=[descriptor],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=os.environ | _ONE_THREAD,
                )
        return self._process, self._requests


_SERVER = _Server()


def _received(
    tasks: Connection, results: Connection, given: bytes, seconds: Sequence[int]
) -> list[Any]:
    """Send a task, and receive the parts of its result; an error takes the place of the rest."""
    parts: list[Any] = []
    for limit_s in seconds:
        until = monotonic() + limit_s
        try:
            if not parts:
                tasks.send_bytes(given)
            if not results.poll(limit_s):
                raise EOFError
            # A function of ours made it.
            part, is_last = pickle.loads(results.recv_bytes())  # noqa: S301
        except (OSError, EOFError):
            is_last = True
            if monotonic() >= until:
                part = _too_much(f"the work on it took more than {limit_s} s and was stopped")
            else:
                what = "it cannot be read: the process that worked on it crashed"
                part = InputError(what, remedy="send it again, or the log of another run")
        parts.append(part)
        if is_last:
            break
    return [*parts, *parts[-1:] * (len(seconds) - len(parts))]


def _too_much(what: str) -> TooMuchWorkError:
    return TooMuchWorkError(what, remedy="send a smaller one, or ask the site for a higher limit")


@contextmanager
def _held(places: threading.Semaphore, seconds: float) -> Iterator[None]:
    if not places.acquire(timeout=seconds):
        raise BusyError("too many uploads are being read at the same time")
    try:
        yield
    finally:
        places.release()


def serve(descriptor: int) -> None:
    """Fork a process for each two pipes that come, until the other end of a pipe is closed."""
    # These signals end the worker, whose end closes the connection and so ends this program.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The kernel forgets a process at its end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.nice(_NICENESS)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    # Otherwise the garbage collector of each process would go through all imported modules, which
    # takes longer than most tasks.
    gc.freeze()
    with Connection(descriptor) as requests, suppress(EOFError):
        while True:
            given, made = recv_handle(requests), recv_handle(requests)
            if os.fork() == 0:
                requests.close()
                _work(Connection(given, writable=False), Connection(made, readable=False))
            os.close(given)
            os.close(made)


def _work(tasks: Connection, results: Connection) -> None:
    """Do a task, in the forked process; it may crash."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        results.send(os.getpid())
        limits, function, args, kwargs = tasks.recv()
        # The worker writes no more to the pipe. If it ends, the kernel kills this process group.
        fcntl(tasks.fileno(), F_SETOWN, -os.getpid())
        fcntl(tasks.fileno(), F_SETSIG, signal.SIGKILL)
        fcntl(tasks.fileno(), F_SETFL, os.O_ASYNC)
        if tasks.poll():
            return
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        memory = limits.memory_bytes
        most = _limit(resource.RLIMIT_AS, memory, memory + _RESERVE_BYTES)
        # If the worker is too busy to stop the process in time, the kernel does.
        _limit(resource.RLIMIT_CPU, limits.seconds + 1, limits.seconds + 2)
        try:
            outcome = function(*args, **kwargs)
            # The parts that a generator has made are there even if the next one kills it.
            for part in outcome if isinstance(outcome, Iterator) else [outcome]:
                _send(results, part)
        except IoncastError as error:
            _send(results, error, is_last=True)
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            what = f"the work on it took more than {memory // MIB} MiB of memory and was stopped"
            _send(results, _too_much(what), is_last=True)
    except BaseException:
        traceback.print_exc()
        with suppress(BaseException):
            _send(results, RuntimeError("a function failed in a process of its own"), is_last=True)
    finally:
        # A process that ended could leave its number to another one before it is killed.
        with suppress(BaseException):
            tasks.poll(None)
        os._exit(0)


def _send(results: Connection, part: object, *, is_last: bool = False) -> None:
    content = pickle.dumps((part, is_last))
    if len(content) > _MAX_RESULT_BYTES:
        raise _too_much(f"the answer would have more than {_MAX_RESULT_BYTES // MIB} MiB")
    results.send_bytes(content)


def _limit(kind: int, soft: int, hard: int) -> int:
    """Lower a limit of this process, unless it is lower already; return how far it can rise."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))
    return hard
