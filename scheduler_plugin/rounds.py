"""The loop of a daemon: repeat a round, report each failure once, end at a signal."""

from __future__ import annotations

import logging
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from ioncast_base.errors import IoncastError


def log_to_stderr(name: str, level: int = logging.INFO) -> None:
    """Write the lines of a daemon's log to stderr; of other loggers only warnings and errors."""
    logging.basicConfig(level=logging.WARNING, format="ioncast: %(message)s", stream=sys.stderr)
    logging.getLogger(name).setLevel(level)


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Raise SystemExit at SIGTERM and SIGINT, also in the middle of a request.

    Yields
    ------
    list of int
        The signals that came. Python ignores exceptions that are raised inside a destructor, so a
        loop has to look here as well.
    """
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        came.append(number)
        # A request that is cut off leaves errors behind that nobody handles any more.
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


def repeat(do_round: Callable[[], object], period_s: float, came: list[int]) -> None:
    """Begin a round every `period_s` seconds until a signal came.

    A round that takes longer than the period delays the next one.
    """
    while not came:
        next_s = time.monotonic() + period_s
        do_round()
        time.sleep(max(next_s - time.monotonic(), 0))


class Failures:
    """Logs the failure of a step when it begins or its reason changes, and when it ends."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._reasons: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def __bool__(self) -> bool:
        """Whether a step fails now."""
        return bool(self._reasons)

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step; an `IoncastError` is logged and not raised."""
        # A number that is there before the first failure shows the first one, too.
        self.counts[name] += 0
        try:
            step()
        except IoncastError as error:
            self.counts[name] += 1
            reason = str(error)
            if self._reasons.get(name) != reason:
                self._reasons[name] = reason
                self._log.error("%s fails: %s", name, reason)
            return False
        if self._reasons.pop(name, None) is not None:
            self._log.info("%s works again", name)
        return True
