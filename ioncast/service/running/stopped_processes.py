"""Processes that SIGSTOP or the like stopped: they do nothing, and hold what they have."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LOG = logging.getLogger("ioncast.service")
_BETWEEN_LOOKS_S = 1.0
# Somebody may stop a process for a moment, or stop all and let them go on one after the other.
_MOST_LOOKS = 5


def _is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped; a process that waits for a disk or a debugger is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    # The name of the program, in brackets, may contain brackets.
    return stat.rpartition(b")")[2].split()[0] == b"T"


def below(pid: int) -> list[int]:
    """List the children and grandchildren of a process."""
    children = _children(pid)
    return [*children, *(each for child in children for each in _children(child))]


class StoppedProcesses:
    """Kills processes that stay stopped, so that others can take their places.

    It counts its own looks instead of seconds: while its own process is stopped, or the whole
    machine, no time passes for the others.
    """

    def __init__(self) -> None:
        self._looks: dict[int, int] = {}
        self._next_look_s = 0.0

    def kill(self, processes: Iterable[int]) -> None:
        """Look at processes, at most once a second; kill those that are stopped for too long."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + _BETWEEN_LOOKS_S
        self._looks = {pid: self._looks.get(pid, 0) + 1 for pid in processes if _is_stopped(pid)}
        for pid, looks in self._looks.items():
            if looks >= _MOST_LOOKS:
                _LOG.error("process %d was stopped by a signal and is replaced", pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """List the children of all threads of a process; a kernel without these files has none."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, path.read_text(encoding="ascii").split())
    return children
