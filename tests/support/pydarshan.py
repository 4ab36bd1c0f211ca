"""Tests need PyDarshan to write logs, and to compare with its reader; not every Python has it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from experiments.applications import darshan_writer
from summario.reading.pydarshan import MissingPyDarshanError

HAS_WHEELS = sys.version_info < (3, 13)


@contextmanager
def skipped_without_pydarshan() -> Iterator[None]:
    """Skip a test that needs PyDarshan where it has no wheels; elsewhere it is an error."""
    try:
        yield
    except MissingPyDarshanError as error:
        if HAS_WHEELS:
            raise
        pytest.skip(error.what)


@contextmanager
def without_pydarshan() -> Iterator[None]:
    """Act as if PyDarshan was not installed."""
    darshan_writer._library.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "darshan", None)
        yield
