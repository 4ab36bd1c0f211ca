"""Trailing writes: small ones of a trace that come after the main phase of writes."""

from __future__ import annotations

from dataclasses import dataclass

from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.reading.operations import Operations

_LOWEST_FIRST: tuple[Api, ...] = ("POSIX", "MPIIO")
_WRITE = OPERATIONS.index("write")
# Trailing writes: smaller than this, and together longer than both and with fewer bytes.
_SMALL_BYTES = 64 << 10
_LEAST_SECONDS, _LEAST_SHARE, _MOST_BYTES_SHARE = 0.5, 0.1, 0.001


@dataclass(frozen=True)
class Trailing:
    """Small writes after the last large one, in seconds since the job's start."""

    start_seconds: float
    end_seconds: float
    requests: int
    bytes: int


def trailing_writes(table: Operations) -> Trailing | None:
    """Find small writes after the main phase of writes; None without any that take long.

    The main phase ends with the last write of at least 64 KiB. Smaller ones after it are trailing
    if they take longer than 0.5 s and a tenth of the main phase, and move less than 0.1 % of the
    bytes. POSIX counts; without POSIX, MPI-IO.

    References
    ----------
    S. L. Harrington, "Diagnosing Parallel I/O Bottlenecks in HPC Applications"; the numbers are
    ioncast's own.
    """
    for api in _LOWEST_FIRST:
        rows = (table.api == APIS.index(api)) & (table.operation == _WRITE)
        if rows.any():
            break
    else:
        return None
    writes = table.take(rows)
    large = writes.take(writes.length >= _SMALL_BYTES)
    if not len(large):
        return None
    end = large.end_seconds.max()
    after = writes.take((writes.length < _SMALL_BYTES) & (writes.start_seconds >= end))
    if not len(after):
        return None
    seconds = float(after.end_seconds.max() - end)
    main_seconds = float(end - writes.start_seconds.min())
    moved = int(after.length.sum())
    is_long = seconds > max(_LEAST_SECONDS, _LEAST_SHARE * main_seconds)
    if not is_long or moved >= _MOST_BYTES_SHARE * writes.length.sum():
        return None
    return Trailing(
        float(after.start_seconds.min()), float(after.end_seconds.max()), len(after), moved
    )
