"""A program that ends the processes which a run of the tests leaves behind, however it ended.

    python guard.py PID MARK FOLDER

Interrupted workers end before their fixtures do, and daemons of Slurm, PostgreSQL or GlusterFS are
no children of the run. They have its mark in their environment; only slurmstepd does not inherit
it, but knows the configuration in the folder of the run.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

_NAME = "RUN_OF_TESTS"
# Daemons that end by themselves also unmount and remove what they made.
_ENDING_S = 5.0
_GIVING_UP_S = 60.0


def start(folder: str) -> None:
    """Start the guard of this process; programs that start from now on have its mark."""
    mark = f"{os.getpid()}-{time.time_ns()}"
    command = [sys.executable, "-S", __file__, str(os.getpid()), mark, folder]
    nothing = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1)]
    # The guard has no mark, and a shell's Ctrl-C does not reach it.
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nothing, setsid=True)
    os.environ[_NAME] = mark


def _left(mark: str, folder: str) -> set[int]:
    """Find the processes of a run, and those below them, which may have another environment."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    known = (f"{_NAME}={mark}\0", f"SLURM_CONF={folder}/")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            # The name of the program, in parentheses, may contain anything.
            state, parent, *_ = (process / "stat").read_bytes().rpartition(b")")[2].split()
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if state != b"Z":
            parents[int(process.name)] = int(parent)
            if any(each.encode() in environment for each in known):
                found.add(int(process.name))
    while below := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= below
    return found


def main() -> None:
    """Wait for the end of the run, and end what it left."""
    run, mark, folder = sys.argv[1:]
    if os.getppid() == int(run):
        ended = select.poll()
        ended.register(os.pidfd_open(int(run)), select.POLLIN)
        ended.poll()
    began = time.monotonic()
    asked: set[int] = set()
    while (left := _left(mark, folder)) and time.monotonic() < began + _GIVING_UP_S:
        if time.monotonic() < began + _ENDING_S:
            number, signalled = signal.SIGTERM, left - asked
        else:
            number, signalled = signal.SIGKILL, left
        asked |= left
        for each in signalled:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, number)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
