"""When files are opened and closed around their reads and writes, and how long the calls take.

Darshan counts opens and closes for reads and writes together, and only the first and last ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ioncast_base.limits import LONGEST_SECONDS
from summario.reading.file_ids import values_of_files
from summario.reading.records import Records

Floats = NDArray[np.float64]


def opens_and_closes(
    records: Records, api: str, operation: str, below: Records | None
) -> tuple[Floats, Floats]:
    """Compute seconds from each record's open to its first access, and from the last to the close.

    Of a file that is also read, the first open and the first close may belong to the write, the
    last ones to the read. The operation that comes first has the first open; the other one has the
    last open if that comes after the first access of both. Closes likewise.

    If `api` calls POSIX, `below` has the POSIX records. Their last opens and their closes count,
    because MPI_File_close waits for the other processes. A time is 0 if the log does not tell, and
    NaN after the last access if the log lacks its end.
    """
    start, end = _times(records, api, operation.upper())
    other_start, other_end = _times(records, api, "WRITE" if operation == "read" else "READ")
    first_open, last_open, first_close, last_close = _of_files(records, api, below)
    # Impossible times are left out later (see `summario.phases.sanity`).
    with np.errstate(invalid="ignore", over="ignore"):
        is_alone = ~(other_end > 0)
        is_first = is_alone | (start <= other_start)
        opened = np.where(is_first, first_open, last_open)
        known = (opened > 0) & (opened <= start) & (is_first | (opened >= other_start))
        before = np.where(known, start - opened, 0.0)
        is_last = is_alone | (end >= other_end)
        closed = np.where(is_last, last_close, first_close)
        next_use = np.where(last_open > end, last_open, other_start)
        known = (closed >= end) & (closed < LONGEST_SECONDS) & (is_last | (closed <= next_use))
        after = np.where(known, closed - end, 0.0)
        if api == "MPIIO":
            # MPI_File_open takes about as long each time; no moment of the log tells a later one.
            begun = np.where(is_first, start, other_start)
            an_open = np.where((first_open > 0) & (first_open <= begun), begun - first_open, 0.0)
            between = np.maximum(start - other_end, 0)
            before = np.where(is_first | (before > 0), before, np.minimum(an_open, between))
            unused = is_last & (last_open > end)
            after = np.where(unused, np.maximum(after - an_open, 0), after)
        return before, np.where((end > 0) & (end >= start), after, np.nan)


def _times(records: Records, api: str, call: str) -> list[Floats]:
    """The start of the first call and the end of the last one; 0 in logs that have neither."""
    names = [f"{api}_F_{call}_{side}_TIMESTAMP" for side in ("START", "END")]
    return [
        records.real(name) if name in records.columns else np.zeros(len(records.words))
        for name in names
    ]


def _of_files(records: Records, api: str, below: Records | None) -> list[Floats]:
    """First and last open, first and last close of each record's file; 0 if the log has none."""
    own = [*_times(records, api, "OPEN"), *_times(records, api, "CLOSE")]
    if below is None or not len(below.words):
        return own
    of_posix = []
    moments = [*_times(below, "POSIX", "OPEN"), *_times(below, "POSIX", "CLOSE")]
    for mine, posix, extreme in zip(own, moments, 2 * (np.fmin, np.fmax), strict=True):
        # Darshan writes 0 for no call.
        of_calls = np.where(posix > 0, posix, np.nan)
        of_file = values_of_files(of_calls, below.ids, records.ids, extreme)
        of_posix.append(np.where(of_file > 0, of_file, mine))
    first_open, *others = of_posix
    return [np.where(own[0] > 0, np.minimum(own[0], first_open), first_open), *others]


def call_times(records: Records, api: str, share: Floats, time: Floats, metadata: Floats) -> Floats:
    """Compute how many seconds the slowest process of each record was in calls, at least.

    A record that is reduced over all ranks has the time of the slowest one, in which `share` is
    the operation's. With MPI-IO it contains waiting for others, so the mean I/O time counts.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        calls = time + np.where((metadata >= 0) & (metadata < LONGEST_SECONDS), metadata, 0.0)
        if api == "MPIIO":
            return calls
        slowest = records.real(f"{api}_F_SLOWEST_RANK_TIME") * share
        is_possible = (records.ranks < 0) & (slowest > calls) & (slowest < LONGEST_SECONDS)
        return np.where(is_possible, slowest, calls)
