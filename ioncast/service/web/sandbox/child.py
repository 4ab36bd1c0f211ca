"""Runs functions on uploads in disposable processes with limits on memory and time."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import IO, Any, ParamSpec, TypeVar, cast

from ioncast.service.web.sandbox._fork_server import (
    BROKEN,
    MAX_RESULT_BYTES,
    OUT_OF_MEMORY,
    RAISED,
    TOO_LARGE,
)
from ioncast.service.web.sandbox.fork_client import ForkServer, SentRequest
from ioncast_base.errors import BusyError, InputError

_T = TypeVar("_T")
_P = ParamSpec("_P")

MIB = 1 << 20
# The server stops a task at its time limit. If it does not within this time, it is killed itself.
_GRACE_S = 10
# How long a task waits until another one ends.
_PATIENCE_S = 5.0
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
from ioncast.service.web.sandbox._fork_server import serve
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

    The first function starts the server that forks a process for each function (see
    `ioncast.service.web.sandbox._fork_server`). After its crash the next function starts another.
    All processes end when this process ends.

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
        self._forks = ForkServer(_server_command, _ONE_THREAD)

    def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function in a separate process.

        Parameters
        ----------
        function : callable
            A function at the top level of a module. It is called once more if the server crashes
            meanwhile.
        *args, **kwargs : object
            Arguments that pickle can write. It must be able to write the result as well.
        """
        return self.run_within(self.limits.seconds, function, *args, **kwargs)

    def run_within(
        self, seconds: int, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Call a function as `run` does, with a shorter time limit if `seconds` is shorter."""
        limits = [min(seconds, self.limits.seconds)]
        [outcome] = self._parts(limits, pickle.dumps((function, args, kwargs)))
        if isinstance(outcome, Exception):
            raise outcome
        return cast(_T, outcome)

    def run_parts(
        self, seconds: Sequence[int], function: Callable[..., Iterator[Any]], *args: object
    ) -> list[Any]:
        """Call a function that yields the parts of a result, in a separate process."""
        limits = [min(each, self.limits.seconds) for each in seconds]
        return self._parts(limits, pickle.dumps((function, (limits, *args), {})))

    def _parts(self, seconds: Sequence[int], task: bytes) -> list[Any]:
        with (
            _held(self._queue, 0),
            _held(self._places, _PATIENCE_S),
        ):
            return self._run(task, seconds, may_retry=True)

    def close(self) -> None:
        """End the server and all processes that it forked; the next function starts another."""
        self._forks.close()

    def _run(self, task: bytes, seconds: Sequence[int], *, may_retry: bool) -> list[Any]:
        limits = replace(self.limits, seconds=sum(seconds))
        with _memory_file("task") as given, _memory_file("result") as result:
            given.write(task)
            given.seek(0)
            asked = self._ask(limits, given.fileno(), result.fileno())
            with asked.reply:
                answer = _answer(asked, limits)
            if not answer and may_retry:
                self._forks.forget(asked.server)
                return self._run(task, seconds, may_retry=False)
            if not answer:
                raise BusyError("the process that reads uploads crashed twice")
            parts = _written_parts(result)
        report = json.loads(answer)
        if report.get("code") == RAISED:
            *parts, failure = parts
        else:
            failed = replace(limits, seconds=seconds[min(len(parts), len(seconds) - 1)])
            failure = _failure(report, failed)
        return [*parts, *[failure] * (len(seconds) - len(parts))]

    def _ask(self, limits: ChildLimits, task: int, result: int) -> SentRequest:
        try:
            return self._forks.ask(asdict(limits), task, result)
        except OSError as error:
            raise BusyError("the process that reads uploads does not start") from error


def _answer(asked: SentRequest, limits: ChildLimits) -> bytes:
    """Wait until the task has ended; the answer is empty if the server crashed."""
    poll = select.poll()
    poll.register(asked.reply, select.POLLIN)
    if not poll.poll(1000 * (limits.seconds + _GRACE_S)):
        asked.server.kill()
    return asked.reply.read()


def _written_parts(result: IO[bytes]) -> list[Any]:
    """Read the parts of a result; one that was not written to its end is left out."""
    result.seek(0)
    parts = []
    # A function of ours made them.
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            parts.append(pickle.load(result))  # noqa: S301
    return parts


def limit_part(seconds: float) -> None:
    """Let the kernel end this process unless its next part begins within so many seconds."""
    # Zero would be no limit.
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))


def _failure(report: dict[str, Any], limits: ChildLimits) -> Exception:
    """Return the error for a task without a result."""
    seconds, memory = limits.seconds, limits.memory_bytes // MIB
    if "failed" in report:
        return BusyError(f"the system cannot start a process: {report['failed']}")
    if "late" in report or report.get("signal") in {signal.SIGXCPU, signal.SIGALRM}:
        return _too_much(f"the work on it took more than {seconds} s and was stopped")
    code = report.get("code")
    if code == OUT_OF_MEMORY:
        return _too_much(f"the work on it took more than {memory} MiB of memory and was stopped")
    if code == TOO_LARGE:
        return _too_much(f"the answer would have more than {MAX_RESULT_BYTES // MIB} MiB")
    if code == BROKEN:
        return RuntimeError("a function failed in a process of its own")
    return InputError(
        "it cannot be read: the process that worked on it crashed",
        remedy="send it again, or the log of another run",
    )


def _server_command(descriptor: int) -> list[str]:
    return [sys.executable, "-I", "-c", _PROGRAM, str(descriptor), *sys.path]


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


def _memory_file(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(f"ioncast-{name}"), "w+b")
