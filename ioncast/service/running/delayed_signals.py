"""Signals that wait until their handlers are there, so that none is lost."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager

# Signals with which gunicorn ends its workers.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


@contextmanager
def delayed(signals: Collection[signal.Signals]) -> Iterator[None]:
    """Let signals wait, also in processes that start meanwhile, until these call `receive`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def receive(signals: Collection[signal.Signals]) -> None:
    """Receive signals from now on, and those that wait."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
