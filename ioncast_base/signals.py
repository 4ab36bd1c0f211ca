"""Turns the signals that stop a program into exceptions, notes, ignores or passes them on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from subprocess import Popen
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raised() -> AbstractContextManager[None]:
    """Raise KeyboardInterrupt for each of the signals that stop a program."""
    return _handling(_interrupt)


def ignored() -> AbstractContextManager[None]:
    """Ignore these signals, for work that must not be left half done."""
    return _handling(signal.SIG_IGN)


@contextmanager
def passed_on() -> Iterator[Callable[[Popen[bytes]], None]]:
    """Pass these signals on to a program, but for Ctrl-C, which its terminal sends it too.

    It yields a function that takes the program once it runs. Signals before that are passed on
    then: Popen returns only after the program has begun.
    """
    programs: list[Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            return
        if not programs:
            early.append(number)
        for each in programs:
            each.send_signal(number)

    def begun(program: Popen[bytes]) -> None:
        programs.append(program)
        for number in early:
            program.send_signal(number)

    with _handling(pass_on):
        yield begun


@contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Note the first of these signals instead of raising it; raise a second one at once."""
    numbers: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if numbers:
            raise KeyboardInterrupt
        numbers.append(number)

    with _handling(note):
        yield lambda: bool(numbers)


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    # Python lets only the main thread set handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in _STOPPING}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
