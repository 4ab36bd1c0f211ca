"""Reads a log with PyDarshan instead of ioncast's own reader, in a process that may crash."""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from ioncast_base.errors import DamagedLogError, IoncastError
from summario.reading.header import MAX_HEADER_BYTES, check_regions, parse_header
from summario.reading.log import MAX_BYTES, DarshanLog, opened_log
from summario.reading.packed import unpacked
from summario.reading.pydarshan import import_pydarshan, log_of_report
from summario.reading.sources import Source

_MAX_SECONDS = 300
# PyDarshan keeps a Python object for each record, and libdarshan-util the decompressed log.
_MAX_MEMORY_BYTES = 4 * MAX_BYTES


def read_with_pydarshan(source: Source) -> DarshanLog:
    """Read a log with PyDarshan; call this only in a process of its own.

    A damaged log may crash the library or never end, so a signal ends the process after 5 minutes.
    """
    pydarshan = import_pydarshan("this reader")
    with _file_of(source) as path, _limited(), _silent():
        try:
            with pydarshan.DarshanReport(path, read_all=False) as report:
                return log_of_report(report, source.name)
        except (IoncastError, MemoryError):
            raise
        except Exception as error:
            reason = str(error).rstrip(".") or type(error).__name__
        # Not chained: the error would keep the report, which writes to standard error at its end.
        raise DamagedLogError(
            f"PyDarshan cannot read it: {reason}",
            where=source.name,
            remedy="read it with ioncast's reader",
        )


@contextmanager
def _file_of(source: Source) -> Iterator[str]:
    """Name a file that has the log as Darshan wrote it; in memory unless it is one already."""
    with _opened(source) as file:
        plain = unpacked(file, source.name, MAX_BYTES)
        plain.seek(0)
        header = parse_header(plain.read(MAX_HEADER_BYTES), source.name)
        # The library takes a log that ends too early for one with fewer records.
        check_regions(header, plain.seek(0, os.SEEK_END), source.name)
        if plain is file and source.content is None:
            yield source.name
            return
        plain.seek(0)
        with os.fdopen(os.memfd_create("log"), "wb") as copy:
            shutil.copyfileobj(plain, copy)
            copy.flush()
            yield f"/proc/self/fd/{copy.fileno()}"


def _opened(source: Source) -> AbstractContextManager[IO[bytes]]:
    return opened_log(source.name) if source.content is None else io.BytesIO(source.content)


@contextmanager
def _limited() -> Iterator[None]:
    """Limit the seconds of a block, and for good the memory of this process and its core file."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = _MAX_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MAX_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(_MAX_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


@contextmanager
def _silent() -> Iterator[None]:
    """Discard the standard error of a block: the library writes there what an error says."""
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
