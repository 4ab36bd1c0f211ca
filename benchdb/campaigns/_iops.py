"""IOPS as a process that ends with the one that started it.

    python -m benchdb.campaigns._iops PARENT ARGUMENT...

It outlives the SIGTERM that ends the run in flight, so that it can cancel jobs and stop in
order; when its parent dies it is hung up, and the run in flight comes to its end by itself.
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
    # A handler, unlike ignoring it, is not inherited by what IOPS starts.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: None)
    from iops.main import main as iops  # noqa: PLC0415

    sys.exit(iops())


if __name__ == "__main__":
    main()
