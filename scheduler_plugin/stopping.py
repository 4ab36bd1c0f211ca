"""How a daemon ends."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Let SIGTERM and SIGINT end whatever is being done, a request too, by SystemExit.

    Yields
    ------
    list of int
        The signals that came. Python ignores what is raised inside of a destructor, so a loop has
        to look here as well.
    """
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        came.append(number)
        # Of what was cut off, half made perhaps, nobody is left to take the error.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _: None
        sys.exit(0)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
