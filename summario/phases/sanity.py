"""Records with impossible numbers: the layer below takes the place of their files, or nothing does.

Some versions of Darshan write an impossible number into a record of a log that is whole
otherwise. For example, MPI-IO counts the bytes of a call in a 32-bit number, so a call of more than
2 GiB can make the sum negative; Darshan 3.1.3 wrote negative times of standard streams.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import DamagedLogError
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.limits import LONGEST_SECONDS
from ioncast_base.wording import counted, size
from summario.phases.selection import select_layer
from summario.phases.streams import MODULE_OF_API, MOST, Floats, Ints, Streams
from summario.reading.file_ids import is_among

_MPIIO, _POSIX = APIS.index("MPIIO"), APIS.index("POSIX")


@dataclass(frozen=True)
class SoundStreams:
    """Streams without impossible records; an impossible metadata time is NaN, unknown.

    `streams` has all files and layers that are left, marked as partial in files with missing
    records; none ends before its start. POSIX streams take the place of the MPI-IO streams of the
    files in `replaced`.
    """

    streams: Streams
    used: Streams
    replaced: NDArray[np.uint64]
    left_out: Streams
    lacking: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


def sound_streams(
    streams: Streams, system_files: NDArray[np.uint64], layer: str, where: str
) -> SoundStreams:
    """Leave out impossible records, and choose the layer of each file (see `select_layer`).

    If one of a file's MPI-IO records is impossible, all of them are left out, and its POSIX records
    count instead: every MPI-IO call reaches POSIX. Otherwise only the impossible record is missing.
    If at least half of the bytes of the chosen layer would be missing, a DamagedLogError says so.
    """
    impossible = ~_possible(streams)
    is_system = is_among(streams.file_id, system_files)
    streams = _with_known_times(streams, impossible)
    files = _with_posix(streams, impossible & ~is_system)
    lost = (streams.api == _MPIIO) & is_among(streams.file_id, files)
    affected = streams.file_id[impossible & ~is_system]
    streams = replace(streams, partial=streams.partial | is_among(streams.file_id, affected))
    # A record that is left out still hides the layers below, which may have other I/O.
    chosen = select_layer(streams.take(~lost & ~is_system), layer)
    possible = _possible(chosen)
    bad, used = chosen.take(~possible), chosen.take(possible)
    kept, left_out = (
        streams.take(~impossible & ~lost),
        streams.take(impossible & ~lost & ~is_system),
    )
    check_sums(kept, where)
    sentences = []
    if len(files):
        [rows] = (impossible & lost).nonzero()
        sentences.append(_replaced(len(files), _fault(streams, rows[0])))
    if len(left_out):
        sentences.append(_left_out(left_out) + _missing(bad, used, where))
    return SoundStreams(
        streams=kept,
        used=used,
        replaced=files,
        left_out=left_out,
        lacking=frozenset(APIS[api] for api in [*bad.api, *streams.api[lost]]),
        warnings=tuple(sentences),
    )


def _with_known_times(streams: Streams, impossible: NDArray[np.bool_]) -> Streams:
    return replace(
        streams,
        end=np.where(impossible, streams.end, np.maximum(streams.start, streams.end)),
        metadata=np.where(_are_durations(streams.metadata), streams.metadata, np.nan),
    )


def sound_logs(streams: Streams, logs: int) -> NDArray[np.bool_]:
    """Tell which logs have possible numbers only, and a possible sum of all."""
    sound = np.ones(logs, bool)
    sound[streams.log[~_possible(streams)]] = False
    for column in (streams.bytes, streams.requests):
        # Sums that rounding could move over the limit do not count as sound.
        sound &= np.bincount(streams.log, column, minlength=logs) < MOST / 2
    return sound


def of_sound_logs(streams: Streams, system_files: NDArray[np.uint64], layer: str) -> SoundStreams:
    """Choose the layer of each file of `sound_logs`."""
    nothing = streams.take(np.zeros(len(streams), bool))
    streams = _with_known_times(streams, np.zeros(len(streams), bool))
    used = select_layer(streams.take(~is_among(streams.file_id, system_files)), layer)
    return SoundStreams(streams, used, replaced=nothing.file_id, left_out=nothing)


def _with_posix(streams: Streams, impossible: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """List files with an impossible MPI-IO record whose POSIX records have the same operations."""
    in_mpiio, ids = streams.api == _MPIIO, streams.file_id
    files = np.unique(ids[impossible & in_mpiio])
    if not len(files):
        return files
    lost = in_mpiio & is_among(ids, files) & (impossible | (streams.bytes > 0))
    below = (streams.api == _POSIX) & ~impossible
    for index in range(len(OPERATIONS)):
        rows = streams.operation == index
        alone = ids[lost & rows]
        files = files[~is_among(files, alone[~is_among(alone, ids[below & rows])])]
    return files


def _left_out(bad: Streams) -> str:
    module = MODULE_OF_API[APIS[bad.api[0]]]
    if len(bad) == 1:
        return f"a {module} record with {_fault(bad, 0)} is left out"
    return f"{counted(len(bad), 'record')} are left out: a {module} record has {_fault(bad, 0)}"


def _missing(bad: Streams, used: Streams, where: str) -> str:
    """Say how many bytes are missing without impossible rows; raise DamagedLogError for half."""
    if not len(bad):
        return ""
    kept = float(used.bytes.sum())
    lost = float(_likely_bytes(bad, kept / max(int(used.requests.sum()), 1)).sum())
    if lost >= kept:
        raise _damaged(bad, 0, where)
    about = "" if _are_counts(bad.bytes).all() else "about "
    return f", so {about}{size(round(lost))} of {size(round(lost + kept))} are missing"


def _likely_bytes(streams: Streams, usual_request_bytes: float) -> Floats:
    """Estimate the bytes of rows with an impossible number; without any hint, infinitely many.

    Bytes that are impossible follow from the requests, if their number is possible.
    """
    common = (np.clip(streams.sizes, 0, MOST).astype(np.float64) * streams.counts).sum(axis=1)
    likely = np.maximum(common, streams.requests * usual_request_bytes)
    likely = np.where(_are_counts(streams.requests), likely, np.inf)
    return np.where(_are_counts(streams.bytes), streams.bytes, likely)


def _are_counts(numbers: Ints) -> NDArray[np.bool_]:
    return (numbers >= 0) & (numbers <= MOST)


def _possible(streams: Streams) -> NDArray[np.bool_]:
    """Tell which rows have numbers that a run can have; NaN is impossible."""
    possible: NDArray[np.bool_] = (
        _are_counts(streams.requests)
        & _are_counts(streams.bytes)
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
