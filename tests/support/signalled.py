"""Runs Python code in which this process gets SIGTERM at a chosen moment.

    python signalled.py at-call NUMBER FILE python -c CODE ARGUMENT…
    python signalled.py at-fork FILE python -c CODE ARGUMENT…

At a call: the signal comes while a destructor runs, as it may at any moment, before the call of a
function with this number. The file gets the number of calls from time to time. At a fork: the
first child of `os.fork` gets it before anything else; its id comes into the file.
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


def signal_at_fork(notes: Path) -> None:
    def forked() -> None:
        if not notes.exists():
            notes.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGTERM)

    os.register_at_fork(after_in_child=forked)


def main() -> None:
    """Run the code."""
    where, *rest = sys.argv[1:]
    if where == "at-call":
        number, notes, _python, _c, code, *arguments = rest
        signal_at_call(int(number), Path(notes))
    else:
        notes, _python, _c, code, *arguments = rest
        signal_at_fork(Path(notes))
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})  # noqa: S102


if __name__ == "__main__":
    main()
