"""The arbiter's heartbeat: a file whose time tells `job_submit.lua` whether the arbiter runs."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ioncast_base.errors import InputError
from scheduler_plugin.locks import locked_file
from scheduler_plugin.roots_files import write_in_place

# A job that nobody releases starts after so many seconds. An arbiter that runs releases each job in
# about a minute at the latest, and one that was killed is soon started again.
HOLD_S = 300
# The time in the file while the arbiter has not worked since its start, and after its end.
STOPPED_S = 0
# As in ioncast.lua: the arbiter works if its time is less than this ago.
HEARTBEAT_S = 30
_LONGEST_BYTES = 40
# The second number is the length of a hold in seconds.
_WRITTEN = re.compile(rb"(\d{1,12}) \d{1,12}\n")


def beat_at(path: str) -> int:
    """The Unix time in the file of a heartbeat, or `STOPPED_S`.

    Raises
    ------
    OSError
        If the file is missing or cannot be read.
    InputError
        If it has no time.
    """
    with Path(path).open("rb") as file:
        written = _WRITTEN.fullmatch(file.read(_LONGEST_BYTES))
    if written is None:
        raise InputError(
            "there is no time in this file", where=path, remedy="restart ioncast-arbiter"
        )
    return int(written[1])


class Heartbeat:
    """The file of `arbitrate.heartbeat`.

    Parameters
    ----------
    lock : str or Path
        The file of `arbitrate.lock`.
    """

    def __init__(self, path: str | Path, lock: str | Path) -> None:
        self._path = Path(path)
        self._lock = Path(lock)
        self._written_s = 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run as the only arbiter: two would undo each other's changes."""
        try:
            lock = locked_file(self._lock, "another arbiter runs")
        except OSError as error:
            raise InputError(
                f"arbitrate.lock cannot be written: {error.strerror}",
                where=str(self._lock),
                remedy="create its folder, in which only this user may write",
            ) from error
        with lock:
            self._write(STOPPED_S)
            yield

    def beat(self) -> None:
        """Write the Unix time, in whole seconds, and how long a job is held at most.

        It may be called often: it writes once a second.
        """
        now_s = int(time.time())
        if now_s != self._written_s:
            self._write(now_s)
            self._written_s = now_s

    def end(self) -> None:
        """Write that the arbiter has ended, so that no more jobs are held."""
        # A heartbeat that cannot be written is too old after 30 s.
        with contextlib.suppress(InputError):
            self._write(STOPPED_S)

    def _write(self, time_s: int) -> None:
        # The length is constant, so a reader never finds a part of it. If it finds digits of two
        # times, the heartbeat counts, or it is too old or in the future and no job is held.
        content = f"{time_s:010d} {HOLD_S:03d}\n".encode()
        write_in_place(self._path, content, "arbitrate.heartbeat")
