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
    count = 0

    # A function that profiles would be called for each return and for C too, which takes longer.
    def called(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal count
        count += 1
        if count == number:
            sys.settrace(None)
            _Dying()
        elif count % _BETWEEN_NOTES == 0:
            notes.write_text(str(count))

    os.register_at_fork(after_in_child=lambda: sys.settrace(None))
    sys.settrace(called)


def main() -> None:
    """Run the code."""
    number, notes, _python, _c, code, *arguments = sys.argv[1:]
    signal_at_call(int(number), Path(notes))
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    main()
