"""A worker's background thread: it reads prepared answers, and starts the keeper if none runs."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ioncast.service.running.stopped_processes import StoppedChildren

if TYPE_CHECKING:
    # The keeper imports this module, and answers no request: it starts faster without Flask.
    from ioncast.service.context import Service

_LOG = logging.getLogger("ioncast.service")
_PERIOD_S = 0.5
# Do not start keepers again and again if each of them ends at once.
_FEWEST_PERIODS_BETWEEN_STARTS = 6


def lock_file(state: str | Path) -> Path:
    """Return the path of the file that a keeper holds a lock on while it lives."""
    return Path(state) / "keeper.lock"


def take_lock(state: str | Path) -> IO[bytes] | None:
    """Open the lock file and lock it until all its descriptors are closed; None if it is locked."""
    path = lock_file(state)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def start(service: Service) -> Callable[[], None]:
    """Start the thread; call the returned function to end it."""
    # A worker answers only after it has read the prepared answers once.
    service.prepared.refresh()
    stop = threading.Event()
    thread = threading.Thread(
        target=_run, args=(service, stop), name="ioncast background", daemon=True
    )
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    return end


def _run(service: Service, stop: threading.Event) -> None:
    keeper: subprocess.Popen[bytes] | None = None
    stopped = StoppedChildren()
    periods = _FEWEST_PERIODS_BETWEEN_STARTS
    while True:
        try:
            service.prepared.refresh()
            if keeper is not None and keeper.poll() is not None:
                keeper = None
            if keeper is not None:
                stopped.kill([keeper.pid])
            periods += 1
            if keeper is None and periods > _FEWEST_PERIODS_BETWEEN_STARTS:
                periods = 0
                # The keeper inherits the lock. If it locked the file itself, each worker would
                # start one meanwhile.
                if (lock := take_lock(service.settings.state)) is not None:
                    with lock:
                        keeper = _start_keeper(service, lock.fileno())
        except Exception:
            # Go on: the worker answers from its copy, and the next attempt may succeed.
            _LOG.exception("a worker's background work failed")
        if stop.wait(_PERIOD_S):
            break
    if keeper is not None:
        keeper.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.wait(_PERIOD_S * 4)


def _start_keeper(service: Service, lock: int) -> subprocess.Popen[bytes]:
    """Start a keeper with the descriptor of its locked file."""
    program = [sys.executable, "-m", "ioncast.service.background.process"]
    keeper = subprocess.Popen(  # noqa: S603
        [*program, str(os.getpid()), str(lock)],
        stdin=subprocess.PIPE,
        pass_fds=[lock],
        # A demonstration has its own folder for temporary files.
        env={**os.environ, "TMPDIR": tempfile.tempdir} if tempfile.tempdir else None,
        # Ctrl-C must reach only the service, which then ends its keeper.
        start_new_session=True,
    )
    assert keeper.stdin is not None  # noqa: S101
    # The database's URL may contain a password, which must not show among a process's arguments.
    with contextlib.suppress(BrokenPipeError), keeper.stdin as settings:
        settings.write(service.settings.model_dump_json().encode())
    return keeper
