"""gunicorn's master, which also keeps the process running that only answers schedulers.

The master listens at the addresses of `decisions_bind` and gives its sockets to the process. So the
sockets outlive a killed process, and clients that connect meanwhile wait for the next one.
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

from gunicorn import sock
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config

from ioncast.service.deciding.counts import DecisionCounts, new_memory
from ioncast.service.deciding.server import Orders
from ioncast.service.settings import Settings

_LOG = logging.getLogger("ioncast.service")
# A process that ends at once must not be started all the time.
_BETWEEN_STARTS_S = 1.0
_STOPS_WITHIN_S = 5.0


class Decider:
    """The process that only answers schedulers.

    Parameters
    ----------
    settings : Settings
        The site's settings.
    lock : int
        Descriptor of the lock on the state folder, which the process holds too: another service
        must not begin before it ended.

    Attributes
    ----------
    counts : DecisionCounts
        The counts of all these processes, one after the other.
    """

    def __init__(self, settings: Settings, lock: int) -> None:
        self._settings = settings
        self._lock = lock
        self._memory = new_memory()
        self._sockets: Sequence[Any] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = -_BETWEEN_STARTS_S
        self.counts = DecisionCounts(self._memory)

    def listen(self, log: Any) -> None:
        """Listen at the addresses, as gunicorn does at its own."""
        config = Config()
        config.set("bind", list(self._settings.decisions_bind))
        self._sockets = sock.create_sockets(config, log)

    def keep_running(self) -> None:
        """Start the process if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        now_s = time.monotonic()
        if now_s < self._started_s + _BETWEEN_STARTS_S:
            return
        if self._process is not None:
            _LOG.error("the process that answers decisions ended; another one starts")
        self._started_s = now_s
        self._process = self._start()

    def stop(self) -> None:
        """Let the process answer the questions that it has, and end it."""
        sock.close_sockets(self._sockets)
        self._sockets = ()
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOPS_WITHIN_S)
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        sockets = [each.fileno() for each in self._sockets]
        process = subprocess.Popen(
            [sys.executable, "-m", "ioncast.service.deciding.server"],
            stdin=subprocess.PIPE,
            pass_fds=[*sockets, self._memory, self._lock],
            # Ctrl-C must reach only the master, which then ends this process.
            start_new_session=True,
        )
        orders = Orders(
            parent=os.getpid(),
            sockets=sockets,
            counts=self._memory,
            # The process needs no database, and its URL may contain a password.
            settings=self._settings.model_copy(update={"database": None}),
        )
        with suppress(BrokenPipeError), process.stdin as place:  # type: ignore[union-attr]
            place.write(orders.model_dump_json().encode())
        return process


class Master(Arbiter):
    """gunicorn's master with the process that only answers schedulers."""

    def __init__(self, app: BaseApplication, decider: Decider) -> None:
        self._decider = decider
        super().__init__(app)

    def start(self) -> None:
        """Listen at all addresses."""
        self._decider.listen(self.log)
        super().start()

    def manage_workers(self) -> None:
        """Start all processes that do not run; called when one ends, and each second."""
        self._decider.keep_running()
        super().manage_workers()

    def stop(self, graceful: bool = True) -> None:
        """Stop all processes."""
        super().stop(graceful)
        self._decider.stop()
