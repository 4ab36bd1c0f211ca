"""What a worker does beside answering: it takes in what was prepared, and sees to the keeper."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from ioncast.service.context import Service

_LOG = logging.getLogger("ioncast.service")
_PERIOD_S = 0.5
# A keeper that ends at once is not started again and again.
_FEWEST_PERIODS_BETWEEN_STARTS = 6


def begin_log() -> None:
    """Say what happens, on standard error."""
    logging.basicConfig(level=logging.INFO, format="ioncast: %(message)s", stream=sys.stderr)
    # The driver warns of what follows from each error that it raises.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def lock_file(state: str | Path) -> Path:
    """The file that a keeper holds a lock on while it lives."""
    return Path(state) / "keeper.lock"


def start(service: Service) -> Callable[[], None]:
    """Begin, in a thread; call what is returned to end it."""
    # Nobody is answered by a worker that does not yet know what was prepared.
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
    periods = _FEWEST_PERIODS_BETWEEN_STARTS
    while True:
        try:
            service.prepared.refresh()
            if keeper is not None and keeper.poll() is not None:
                keeper = None
            periods += 1
            if keeper is None and periods > _FEWEST_PERIODS_BETWEEN_STARTS:
                periods = 0
                if not _is_kept(service.settings.state):
                    keeper = _start_keeper(service)
        except Exception:
            # Answers go on from what is known; the next time may be better.
            _LOG.exception("a worker's background work failed")
        if stop.wait(_PERIOD_S):
            break
    if keeper is not None:
        keeper.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.wait(_PERIOD_S * 4)


def _is_kept(state: str) -> bool:
    """Whether somebody holds the keeper's lock."""
    path = lock_file(state)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _start_keeper(service: Service) -> subprocess.Popen[bytes]:
    """Start one; of several that are started at once all but one end by themselves."""
    keeper = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "ioncast.service.keeper.process", str(os.getpid())],
        stdin=subprocess.PIPE,
        # Ctrl-C is for the service, which then ends its keeper.
        start_new_session=True,
    )
    assert keeper.stdin is not None  # noqa: S101
    # Not as an argument: the database's URL may hold a password.
    with contextlib.suppress(BrokenPipeError), keeper.stdin as settings:
        settings.write(service.settings.model_dump_json().encode())
    return keeper
