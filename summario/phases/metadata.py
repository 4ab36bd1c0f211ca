"""The time that processes spend in metadata calls: open, close, stat, seek and others.

Darshan counts it for each file, of reads and writes together, without fsync, which is a write.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ioncast_base.limits import LONGEST_SECONDS
from summario.reading.file_ids import values_of_files
from summario.reading.records import Records

Floats = NDArray[np.float64]


def metadata_times(records: Records, api: str, share: Floats, below: Records | None) -> Floats:
    """Compute each record's metadata time that belongs to one operation, in seconds of a process.

    Reads and writes of a file divide its metadata time in proportion to their I/O times. A file has
    the smaller of its times in MPI-IO and in POSIX: MPI_File_open and MPI_File_close wait for other
    processes, and POSIX seeks during a write are part of the MPI-IO write.
    """
    if not len(records.words):
        return np.zeros(0)
    # Impossible times are left out later (see `summario.phases.sanity`).
    with np.errstate(invalid="ignore", over="ignore"):
        times = _of_a_process(records, api)
        if below is not None and len(below.words):
            in_posix = _of_a_process(below, "POSIX")
            slowest = values_of_files(in_posix, below.ids, records.ids, np.maximum)
            times = np.fmin(times, slowest)
        divided: Floats = times * share
    return divided


def share_of_operation(records: Records, api: str, operation: str) -> Floats:
    """Divide a time that Darshan counts for reads and writes together, by the I/O times of both."""
    own = records.real(f"{api}_F_{operation.upper()}_TIME")
    # Impossible times are left out later (see `summario.phases.sanity`).
    with np.errstate(invalid="ignore", over="ignore"):
        other = records.real(f"{api}_F_{'WRITE' if operation == 'read' else 'READ'}_TIME")
        both = own + np.where((other >= 0) & (other < LONGEST_SECONDS), other, 0)
        # Times below the clock's resolution are 0; then the whole time belongs to both.
        return np.divide(own, both, out=np.ones(len(own)), where=both > 0)


def _of_a_process(records: Records, api: str) -> Floats:
    """Metadata time of each record; the mean of all processes if the record is reduced."""
    return records.real(f"{api}_F_META_TIME") / records.processes
