"""Records with impossible numbers: the layer below takes the place of their files.

Some versions of Darshan write an impossible number into a record of a log that is whole
otherwise. For example, MPI-IO counts the bytes of a call in a 32-bit number, so a call of more than
2 GiB can make the sum negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import DamagedLogError
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.limits import LONGEST_SECONDS
from ioncast_base.wording import counted
from summario.phases.streams import MODULE_OF_API, MOST, Floats, Streams
from summario.reading.file_ids import is_among

_MPIIO, _POSIX = APIS.index("MPIIO"), APIS.index("POSIX")


@dataclass(frozen=True)
class SoundStreams:
    """Streams without impossible records.

    Attributes
    ----------
    streams : Streams
        The streams that are left; none ends before its start. Streams of files with missing
        records are marked as partial. An impossible metadata time is NaN, unknown.
    warnings : tuple of str
        A sentence if files were replaced.
    """

    streams: Streams
    warnings: tuple[str, ...] = ()


def sound_streams(streams: Streams, where: str) -> SoundStreams:
    """Leave out the MPI-IO records of files with an impossible one.

    Parameters
    ----------
    streams : Streams
        All streams of a log.
    where : str
        The log's name, for errors.

    Raises
    ------
    DamagedLogError
        When a file with an impossible record has no records of the same operations in a layer
        below.
    """
    impossible = ~_possible(streams)
    streams = replace(
        streams,
        end=np.maximum(streams.start, streams.end),
        metadata=np.where(_are_durations(streams.metadata), streams.metadata, np.nan),
    )
    if not impossible.any():
        check_sums(streams, where)
        return SoundStreams(streams)
    row = int(np.flatnonzero(impossible)[0])
    files = np.unique(streams.file_id[impossible])
    in_mpiio, of_files = streams.api == _MPIIO, is_among(streams.file_id, files)
    lost = in_mpiio & of_files
    with_data = impossible | (streams.bytes > 0)
    below = (streams.api == _POSIX) & ~impossible
    if (impossible & ~in_mpiio).any() or not _have_all(streams, lost & with_data, below):
        raise _damaged(streams, row, where)
    kept = replace(streams, partial=streams.partial | of_files | in_mpiio).take(~lost)
    check_sums(kept, where)
    return SoundStreams(kept, (_replaced(len(files), _fault(streams, row)),))


def _have_all(streams: Streams, lost: NDArray[np.bool_], below: NDArray[np.bool_]) -> bool:
    """Whether the rows below have all files of the lost rows, with the same operations."""
    ids = streams.file_id
    of_operation = (streams.operation == index for index in range(len(OPERATIONS)))
    return all(is_among(ids[lost & rows], ids[below & rows]).all() for rows in of_operation)


def _possible(streams: Streams) -> NDArray[np.bool_]:
    """Tell which rows have numbers that a run can have; NaN is impossible."""
    possible: NDArray[np.bool_] = (
        (streams.requests >= 0)
        & (streams.requests <= MOST)
        & (streams.bytes >= 0)
        & (streams.bytes <= MOST)
        & (np.abs(streams.start) < LONGEST_SECONDS)
        & (np.abs(streams.end) < LONGEST_SECONDS)
        & _are_durations(streams.time)
    )
    return possible


def _are_durations(seconds: Floats) -> NDArray[np.bool_]:
    possible: NDArray[np.bool_] = (seconds >= 0) & (seconds < LONGEST_SECONDS)
    return possible


def check_sums(streams: Streams, where: str) -> None:
    """Raise DamagedLogError when rows add up to more bytes or requests than a run can have."""
    for column in (streams.bytes, streams.requests):
        if column.sum(dtype=np.float64) > MOST:
            raise _damaged(streams, int(np.argmax(column)), where)


def _fault(streams: Streams, row: int) -> str:
    operation = OPERATIONS[streams.operation[row]]
    if not 0 <= streams.requests[row] <= MOST:
        return f"an impossible number of {operation}s"
    times = np.array([streams.start[row], streams.end[row], streams.time[row]])
    if not np.abs(times).max() < LONGEST_SECONDS or times[-1] < 0:
        return f"an impossible {operation} time"
    return "an impossible number of bytes"


def _replaced(files: int, fault: str) -> str:
    return (
        f"the MPI-IO records of {counted(files, 'file')} are not used, because one has {fault}: the"
        " POSIX records of the same files count instead"
    )


def _damaged(streams: Streams, row: int, where: str) -> DamagedLogError:
    module = MODULE_OF_API[APIS[streams.api[row]]]
    return DamagedLogError(
        f"a {module} record has {_fault(streams, row)}",
        where=where,
        remedy="use the log of another run",
    )
