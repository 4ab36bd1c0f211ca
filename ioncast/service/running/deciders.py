"""gunicorn's master, which also keeps the processes running that only answer schedulers.

The master listens at the addresses of `decisions_bind` and gives its sockets to the processes. So
the sockets outlive a killed process, and clients that connect meanwhile wait for another one.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click
from gunicorn import sock
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config

from ioncast.service.decide.counts import DecisionCounts, new_memory
from ioncast.service.decide.server import ServerConfig
from ioncast.service.running.binding import opened
from ioncast.service.running.delayed_signals import ENDING, delayed
from ioncast.service.running.stopped_processes import StoppedChildren
from ioncast.service.settings import Settings

_LOG = logging.getLogger("ioncast.service")
# One process answers while the other one starts again. Each holds all prepared answers in memory.
_MOST_PROCESSES = 2
# A process that ends at once must not be started all the time.
_BETWEEN_STARTS_S = 1.0
_STOPS_WITHIN_S = 5.0
# A step of the master takes a second, or a little longer while it starts workers.
_LONGEST_STEP_S = 5.0


class Deciders:
    """The processes that only answer schedulers, on the same sockets.

    They hold the lock on the state folder too: another service must not begin before they ended.
    """

    def __init__(self, settings: Settings, lock: int) -> None:
        self._settings = settings
        self._sockets: Sequence[Any] = ()
        several = min(settings.workers, _MOST_PROCESSES)
        self._each = [_Decider(settings, lock) for _ in range(several)]

    @property
    def counts(self) -> Sequence[DecisionCounts]:
        """The counts of each process."""
        return [each.counts for each in self._each]

    @property
    def running(self) -> Sequence[int]:
        """The ids of the processes that run."""
        return [pid for each in self._each if (pid := each.pid) is not None]

    def listen(self, log: Any) -> None:
        """Listen at the addresses, as gunicorn does at its own, and say who may ask there."""
        config = Config()
        config.set("bind", list(self._settings.decisions_bind))
        # Nobody connects before the rights of a socket are set.
        config.set("umask", 0o777)
        self._sockets = sock.create_sockets(config, log)
        for bind in self._settings.decisions_bind:
            whom = opened(bind, self._settings.decisions_group)
            click.echo(f"ioncast: decisions on {bind}{whom}", err=True)

    def keep_running(self) -> None:
        """Start the processes that do not run."""
        for each in self._each:
            each.keep_running([listening.fileno() for listening in self._sockets])

    def stop(self) -> None:
        """Let the processes answer the questions that they have, and end them."""
        sock.close_sockets(self._sockets)
        self._sockets = ()
        for each in self._each:
            each.ask_to_stop()
        for each in self._each:
            each.stop()


class _Decider:
    """One process after the other: when one ends, the next one takes its place and its counts."""

    def __init__(self, settings: Settings, lock: int) -> None:
        self._settings = settings
        self._lock = lock
        self._memory = new_memory()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = -_BETWEEN_STARTS_S
        self.counts = DecisionCounts(self._memory)

    @property
    def pid(self) -> int | None:
        """The id of the process, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def keep_running(self, sockets: Sequence[int]) -> None:
        """Start the process if it does not run."""
        if self.pid is not None:
            return
        now_s = time.monotonic()
        if now_s < self._started_s + _BETWEEN_STARTS_S:
            return
        if self._process is not None:
            _LOG.error("a process that answers decisions ended; another one starts")
        self._started_s = now_s
        self._process = self._start(sockets)

    def ask_to_stop(self) -> None:
        """Let the process answer the questions that it has."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End the process, which was asked to stop."""
        if self._process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOPS_WITHIN_S)
        self._process.kill()
        self._process.wait()

    def _start(self, sockets: Sequence[int]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ioncast.service.decide.server"],
            stdin=subprocess.PIPE,
            pass_fds=[*sockets, self._memory, self._lock],
            # Ctrl-C must reach only the master, which then ends this process.
            start_new_session=True,
        )
        orders = ServerConfig(
            parent=os.getpid(),
            sockets=list(sockets),
            counts=self._memory,
            # The process needs no database, and its URL may contain a password.
            settings=self._settings.model_copy(update={"database": None}),
        )
        with suppress(BrokenPipeError), process.stdin as place:  # type: ignore[union-attr]
            place.write(orders.model_dump_json().encode())
        return process


class Master(Arbiter):
    """gunicorn's master with the processes that only answer schedulers."""

    def __init__(self, app: BaseApplication, deciders: Deciders) -> None:
        self._deciders = deciders
        self._stopped = StoppedChildren()
        self._stepped_s = time.monotonic()
        super().__init__(app)

    def start(self) -> None:
        """Listen at all addresses."""
        self._deciders.listen(self.log)
        super().start()

    def manage_workers(self) -> None:
        """Start all processes that do not run; called when one ends, and each second."""
        self._deciders.keep_running()
        super().manage_workers()

    def murder_workers(self) -> None:
        """Kill processes that are stopped, and workers that are late; called each second."""
        self._stopped.kill([*self.WORKERS, *self._deciders.running])
        late_s = time.monotonic() - self._stepped_s
        self._stepped_s += late_s
        if late_s > _LONGEST_STEP_S:
            # The master itself was stopped, perhaps with its workers: they are not late.
            for worker in self.WORKERS.values():
                worker.tmp.notify()
        super().murder_workers()

    def spawn_worker(self) -> Any:
        """Start a worker, which receives signals only when it has its own handlers."""
        with delayed(ENDING):
            return super().spawn_worker()

    def stop(self, graceful: bool = True) -> None:
        """Stop all processes."""
        super().stop(graceful)
        self._deciders.stop()
