"""Starts the processes of a service, replaces those that end or stand still, and ends them all."""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from ioncast.service.running.service_log import begin_log
from ioncast.service.running.stopped_processes import StoppedProcesses, below
from ioncast_base.files import running_module

_LOG = logging.getLogger("ioncast.service")
# A process that ends at once must not be started all the time.
_BETWEEN_STARTS_S = 1.0
_LONGEST_PAUSE_S = 1.0
# Longer than any process lets its last requests take.
_STOPS_WITHIN_S = 15.0
_PR_SET_PDEATHSIG = 1
# Pages, uploads and preparing take the time of processors that decisions do not need.
NICENESS = 5

_Orders = TypeVar("_Orders", bound=BaseModel)


@dataclass
class Process:
    """A process that another one replaces when it ends.

    Attributes
    ----------
    name : str
        Its name in the log.
    module : str
        The Python module that it runs.
    orders : BaseModel
        Read by the process as JSON from its standard input. The address of a database may contain
        a password, which must not show among a process's arguments.
    files : sequence of int
        Descriptors that it inherits.
    """

    name: str
    module: str
    orders: BaseModel
    files: Sequence[int] = ()
    running: subprocess.Popen[bytes] | None = None
    _started_s: float = field(default=-_BETWEEN_STARTS_S, repr=False)

    def keep_running(self) -> None:
        """Start the process if it does not run, at most once a second."""
        if self.running is not None and self.running.poll() is None:
            return
        now_s = time.monotonic()
        if now_s < self._started_s + _BETWEEN_STARTS_S:
            return
        if self.running is not None:
            _LOG.error("%s ended; another process starts", self.name)
        self._started_s = now_s
        try:
            self.running = subprocess.Popen(  # noqa: S603
                running_module(self.module, str(os.getpid())),
                stdin=subprocess.PIPE,
                pass_fds=self.files,
                # Ctrl-C must reach only this process, which then ends all others.
                start_new_session=True,
            )
        except OSError as error:
            # Without memory for another process the others still answer.
            _LOG.error("%s cannot start: %s", self.name, error.strerror)
            return
        with suppress(BrokenPipeError), self.running.stdin as place:  # type: ignore[union-attr]
            place.write(self.orders.model_dump_json().encode())

    def end(self, until_s: float) -> None:
        """Wait for the end of the process, which was asked to end; kill it if it takes longer."""
        if self.running is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self.running.wait(max(until_s - time.monotonic(), 0))
        self.running.kill()
        self.running.wait()


def keep_running(processes: Sequence[Process]) -> None:
    """Keep processes running until SIGTERM or SIGINT, then end them."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake)
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: ending.append(number))
    # The end of a process wakes this one.
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    stopped = StoppedProcesses()
    while not ending:
        for each in processes:
            each.keep_running()
        stopped.kill(below(os.getpid()))
        select.select([woken], [], [], _LONGEST_PAUSE_S)
        with suppress(BlockingIOError):
            os.read(woken, 4096)
    for each in processes:
        if each.running is not None:
            each.running.send_signal(signal.SIGTERM)
    until_s = time.monotonic() + _STOPS_WITHIN_S
    for each in processes:
        each.end(until_s)


def begin(orders: type[_Orders], *, niceness: int = 0) -> _Orders:
    """Begin a process that `keep_running` started; return its orders.

    Parameters
    ----------
    niceness : int
        How much of the processors' time it leaves to others, as for `nice`.
    """
    end_with(int(sys.argv[1]))
    begin_log()
    os.nice(niceness)
    return orders.model_validate_json(sys.stdin.buffer.read())


def end_with(parent: int) -> None:
    """Let the kernel kill this process with its parent; end it if that one ended already."""
    # A stopped process would receive no other signal, and keep its locks and addresses.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
