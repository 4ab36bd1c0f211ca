"""The arbiter's heartbeat: a file whose age tells `job_submit.lua` whether the arbiter runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.locks import locked_file

# A job that nobody releases starts after so many seconds. An arbiter that runs releases each job in
# about a minute at the latest, and one that was killed is soon started again.
HOLD_S = 300


class Heartbeat:
    """The file of `arbitrate.heartbeat`, and a lock file beside it.

    Parameters
    ----------
    path : str or Path
        The file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._written_s = 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run as the only arbiter: two would undo each other's changes.

        Raises
        ------
        InputError
            If another arbiter runs, or the folder cannot be written.
        """
        path = self._path.with_name(f"{self._path.name}.lock")
        with _writable(path):
            lock = locked_file(path, "another arbiter runs")
        with lock:
            yield

    def beat(self) -> None:
        """Write the Unix time, in whole seconds, and how long a job is held at most.

        It may be called often: it writes once a second.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        # A reader finds the old number or the new one, never a part of a number.
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        now_s = int(time.time())
        if now_s == self._written_s:
            return
        with _writable(self._path):
            new.write_text(f"{now_s} {HOLD_S}\n")
            new.replace(self._path)
        self._written_s = now_s

    def end(self) -> None:
        """Remove the file, so that no more jobs are held."""
        # A file that cannot be removed is too old after 30 s.
        with contextlib.suppress(OSError):
            self._path.unlink()


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"arbitrate.heartbeat cannot be written: {error.strerror}",
            where=str(path),
            remedy="create the folder and let this user write to it",
        ) from error
