"""Runs Python code in which this process gets SIGTERM at a chosen moment.

    python signalled.py NUMBER FILE python -c CODE ARGUMENT…

The signal comes while a destructor runs, as it may at any moment, before the call of a function
with this number. The file gets the number of calls from time to time.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

_BETWEEN_NOTES = 10_000


class _Dying:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        # Python calls the handler between the steps of this loop.
        for _ in range(10):
            pass


def signal_at_call(number: int, notes: Path) -> None:
    count, process = 0, os.getpid()

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        if event != "call":
            return
        count += 1
        if os.getpid() != process:
            sys.setprofile(None)
        elif count == number:
            sys.setprofile(None)
            _Dying()
        elif count % _BETWEEN_NOTES == 0:
            notes.write_text(str(count))

    sys.setprofile(called)


def main() -> None:
    """Run the code."""
    number, notes, _python, _c, code, *arguments = sys.argv[1:]
    signal_at_call(int(number), Path(notes))
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    main()
