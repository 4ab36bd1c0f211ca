"""The time that processes spend in metadata calls: open, close, stat, seek and others.

Darshan counts it for each file, of reads and writes together. It does not contain fsync, which
Darshan counts as a write.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from summario.reading.records import Records

Floats = NDArray[np.float64]


def metadata_times(
    records: Records, api: str, operation: str, nprocs: int, below: Records | None
) -> Floats:
    """Compute each record's metadata time that belongs to one operation, in seconds of a process.

    A file that was read and written divides it in proportion to the I/O times of both. So both
    have the same ratio of metadata time to I/O time.

    MPI_File_open and MPI_File_close wait for the other processes, and POSIX seeks during a write
    are part of the MPI-IO write. So a file has the smaller one of its metadata times in MPI-IO
    and in POSIX.

    Parameters
    ----------
    records : Records
        Records of the module of `api`.
    api, operation : str
        One of `APIS` and of `OPERATIONS`.
    nprocs : int
        Processes of the job.
    below : Records, optional
        The log's POSIX records, if `api` calls POSIX.
    """
    if not len(records.words):
        return np.zeros(0)
    # Impossible times are left out later (see `summario.phases.soundness`).
    with np.errstate(invalid="ignore", over="ignore"):
        times = _of_a_process(records, api, nprocs)
        if below is not None and len(below.words):
            times = np.minimum(times, _of_slowest_process(below, records.ids, nprocs))
        own = records.real(f"{api}_F_{operation.upper()}_TIME")
        both = records.real(f"{api}_F_READ_TIME") + records.real(f"{api}_F_WRITE_TIME")
        # Times below the clock's resolution are 0; then the whole metadata time belongs to both.
        share = np.divide(own, both, out=np.ones(len(own)), where=both > 0)
        divided: Floats = times * share
    return divided


def _of_a_process(records: Records, api: str, nprocs: int) -> Floats:
    """Metadata time of each record; the mean of all processes if the record is reduced."""
    return records.real(f"{api}_F_META_TIME") / np.where(records.ranks < 0, nprocs, 1)


def _of_slowest_process(records: Records, ids: NDArray[np.uint64], nprocs: int) -> Floats:
    """The longest metadata time of a process in POSIX, for each id; infinite without records."""
    order = np.argsort(records.ids, kind="stable")
    known = records.ids[order]
    first = np.flatnonzero(np.append(True, known[1:] != known[:-1]))
    known = known[first]
    longest = np.maximum.reduceat(_of_a_process(records, "POSIX", nprocs)[order], first)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[place] == ids, longest[place], np.inf)
