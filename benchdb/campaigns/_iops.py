"""Runs IOPS in a process that stops when its parent dies.

    python -m benchdb.campaigns._iops PARENT ARGUMENT...

A SIGTERM to the process group ends the current run, but not this process, so that it can still
cancel jobs. When its parent dies, it gets a SIGHUP and stops; the current run finishes by itself.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run IOPS with the arguments that follow the parent's process id."""
    parent = int(sys.argv.pop(1))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
    if os.getppid() != parent:
        sys.exit(1)
    # Programs that IOPS starts would inherit an ignored signal, but not a handler.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: None)
    from iops.main import main as iops  # noqa: PLC0415

    sys.exit(iops())


if __name__ == "__main__":
    main()
