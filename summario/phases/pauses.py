"""Step 5 of the extraction: split records at pauses that only Darshan's traces show.

A file that is used again and again has one record with the first start and the last end. If the
log has DXT segments or a HEATMAP, which is a histogram of bytes over time, such a record is split
at each pause: a time longer than the time distance in which no rank moved bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.merge import FilePhases, rows_apart, stack_rows, take_rows
from summario.phases.streams import Floats, Ints, Streams, is_among
from summario.reading.log import DarshanLog

_DXT_MODULE = {"POSIX": "DXT_POSIX", "MPIIO": "DXT_MPIIO"}
# From this version of a module on, a segment has a thread id after its times.
_DXT_WITH_THREAD = {"DXT_POSIX": 2, "DXT_MPIIO": 3}


@dataclass(frozen=True)
class Heatmap:
    """Bytes moved by one api and operation over time, summed over ranks.

    Attributes
    ----------
    bin_seconds : float
        The width of a bin; the first bin starts with the job.
    bytes : ndarray of int64, shape (bins,)
        Bytes moved in each bin.
    """

    bin_seconds: float
    bytes: Ints

    def pauses(self, time_distance: float) -> list[tuple[int, int]]:
        """Find runs of empty bins longer than `time_distance` seconds, as [first, end) indices."""
        edges = np.flatnonzero(np.diff(np.concatenate([[1], self.bytes != 0, [1]])))
        runs = edges.reshape(-1, 2)
        long = (runs[:, 1] - runs[:, 0]) * self.bin_seconds > time_distance
        return [(int(first), int(end)) for first, end in runs[long]]


@dataclass(frozen=True)
class Windows:
    """The windows of a heat map: the times between its pauses.

    Attributes
    ----------
    starts, ends : ndarray of float64, shape (windows,)
        Seconds; the first start and the last end are infinite.
    moved : ndarray of float64, shape (windows,)
        Moved bytes, without the bytes of files that were used in only one window.
    """

    starts: Floats
    ends: Floats
    moved: Floats


@dataclass(frozen=True)
class Segments:
    """Traced requests of one file and operation; lengths in bytes, times in seconds."""

    length: Ints
    start: Floats
    end: Floats

    def are_all_of(self, row: FilePhases) -> bool:
        """Whether they are all requests of a row; a full trace buffer has only the first ones."""
        return bool(
            len(self.length) == row.requests[0]
            and (self.length >= 0).all()
            and self.length.sum(dtype=np.float64) == row.bytes[0]
            and (self.start <= self.end).all()
            and np.isfinite(self.end - self.start).all()
        )


def split_at_pauses(
    file_phases: FilePhases, log: DarshanLog, streams: Streams, time_distance: float
) -> FilePhases:
    """Split rows at pauses of more than `time_distance` seconds.

    If DXT has all requests of a file, the split is exact. Otherwise the requests of a row are
    shared out by the bytes that the HEATMAP counted before and after each pause.

    Parameters
    ----------
    file_phases : FilePhases
        Rows from `summario.phases.merge.merge_ranks`.
    log : DarshanLog
        The log of the rows.
    streams : Streams
        All streams of the log, also of other layers and of system files, because the HEATMAP
        counts their bytes.
    time_distance : float
        The longest time without I/O, in seconds, that is not a pause.
    """
    long_rows = np.flatnonzero(file_phases.end - file_phases.start > time_distance)
    if not log.traces or not len(long_rows):
        return file_phases
    segments = _segments_of(log, set(file_phases.file_id[long_rows].tolist()))
    windows = {
        (api, operation): _windows(heatmap, file_phases, streams, api, operation, time_distance)
        for (api, operation), heatmap in _heatmaps(log).items()
    }
    pieces: dict[int, FilePhases] = {}
    for index, row in zip(long_rows.tolist(), rows_apart(file_phases, long_rows), strict=True):
        key = (APIS[row.api[0]], OPERATIONS[row.operation[0]])
        traced = segments.get((*key, int(row.file_id[0])))
        if traced is not None and traced.are_all_of(row):
            split = _split_by_segments(row, traced, time_distance)
        elif key in windows:
            split = _split_by_heatmap(row, windows[key])
        else:
            split = None
        if split is not None:
            pieces[index] = split
    if not pieces:
        return file_phases
    whole = np.ones(len(file_phases), bool)
    whole[list(pieces)] = False
    return stack_rows([take_rows(file_phases, whole), *pieces.values()])


def _windows(
    heatmap: Heatmap,
    file_phases: FilePhases,
    streams: Streams,
    api: str,
    operation: str,
    time_distance: float,
) -> Windows:
    """Find the windows of a heat map; subtract the bytes of files used in only one window."""
    pauses = np.array(heatmap.pauses(time_distance), np.int64).reshape(-1, 2)
    starts = np.append(-np.inf, pauses[:, 1] * heatmap.bin_seconds)
    ends = np.append(pauses[:, 0] * heatmap.bin_seconds, np.inf)
    until = np.append(0, np.cumsum(heatmap.bytes, dtype=np.float64))
    moved = until[np.append(pauses[:, 0], -1)] - until[np.append(0, pauses[:, 1])]

    def window(times: Floats) -> Ints:
        return np.searchsorted(starts, times, side="right") - 1

    kind = (APIS.index(api), OPERATIONS.index(operation)) if api in APIS else (-1, -1)
    rows = (file_phases.api == kind[0]) & (file_phases.operation == kind[1])
    spanning = rows & (window(file_phases.start) != window(file_phases.end))
    others = (streams.api == kind[0]) & (streams.operation == kind[1])
    others &= ~is_among(streams.file_id, file_phases.file_id[spanning])
    others &= streams.end <= ends[window(streams.start)]
    inside = window(streams.start[others])
    moved -= np.bincount(inside, streams.bytes[others], minlength=len(starts))
    return Windows(starts, ends, np.maximum(moved, 0))


def _split_by_segments(
    row: FilePhases, traced: Segments, time_distance: float
) -> FilePhases | None:
    order = np.argsort(traced.start, kind="stable")
    start, end, length = traced.start[order], traced.end[order], traced.length[order]
    latest = np.maximum.accumulate(end)
    cuts = np.flatnonzero(start[1:] > latest[:-1] + time_distance) + 1
    if not len(cuts):
        return None
    first = np.append(0, cuts)
    piece = np.searchsorted(cuts, np.arange(len(start)), side="right")
    by_size = [np.unique(part, return_counts=True) for part in np.split(length, cuts)]
    busy = np.add.reduceat(end - start, first)
    return _pieces(
        row,
        start=start[first],
        end=np.maximum.reduceat(end, first),
        requests=np.bincount(piece),
        busy_share=busy / max(busy.sum(), 1e-12),
        sizes=[(sizes.astype(float), counts, sizes * counts) for sizes, counts in by_size],
    )


def _split_by_heatmap(row: FilePhases, windows: Windows) -> FilePhases | None:
    start, end = float(row.start[0]), float(row.end[0])
    # A start within a pause belongs to the window after it, an end to the window before it.
    first = int(np.searchsorted(windows.ends, start, side="right"))
    last = int(np.searchsorted(windows.starts, end, side="left")) - 1
    if first >= last:
        return None
    starts = np.append(start, windows.starts[first + 1 : last + 1])
    ends = np.append(windows.ends[first:last], end)
    # The row moved bytes at its start and at its end, so these windows have at least one byte.
    moved = np.maximum(windows.moved[first : last + 1], [1, *np.zeros(last - first - 1), 1])
    busy = moved > 0
    if busy.sum() > row.requests[0]:
        return None
    return _shared_out(row, starts[busy], ends[busy], moved[busy] / moved.sum())


def _shared_out(row: FilePhases, start: Floats, end: Floats, share: Floats) -> FilePhases:
    """Copy a row for each window and share out its requests.

    `start`, `end` and `share` have an entry for each window; the shares add up to 1.
    """
    until = np.append(0, np.cumsum(share))
    until[-1] = 1
    requests_until = np.rint(np.outer(until, row.part_requests)).astype(np.int64)
    # A request is not split, so the bytes of a piece follow from its requests.
    bytes_until = np.rint(requests_until * (row.part_bytes / row.part_requests)).astype(np.int64)
    bytes_until[-1] = row.part_bytes
    # Reads at the end of a file move no bytes, so they are in no part.
    empty = row.requests[0] - row.part_requests.sum()
    empty_until = np.rint(until * empty).astype(np.int64)
    requests = np.diff(requests_until.sum(axis=1) + empty_until)
    parts = list(zip(np.diff(requests_until, axis=0), np.diff(bytes_until, axis=0), strict=True))
    kept = np.flatnonzero(requests)
    return _pieces(
        row,
        start=start[kept],
        end=end[kept],
        requests=requests[kept],
        busy_share=share[kept] / share[kept].sum(),
        sizes=[(row.part_size, *parts[piece]) for piece in kept],
    )


def _pieces(
    row: FilePhases,
    *,
    start: Floats,
    end: Floats,
    requests: Ints,
    busy_share: Floats,
    sizes: list[tuple[Floats, Ints, Ints]],
) -> FilePhases:
    """Copy a row for each piece, with the piece's times, requests and parts.

    `sizes` has for each piece the request sizes, their counts and their bytes.
    """
    count = len(start)
    whole = stack_rows([row] * count)
    part_row = np.repeat(np.arange(count), [len(size) for size, _, _ in sizes])
    part_size, part_requests, part_bytes = (
        np.concatenate([piece[column] for piece in sizes]) for column in range(3)
    )
    used = part_bytes > 0
    return replace(
        whole,
        start=start,
        end=end,
        requests=requests,
        unordered=_first_accesses(row, count),
        bytes=np.bincount(part_row, part_bytes, minlength=count).astype(np.int64),
        time=whole.time * busy_share,
        part_row=part_row[used],
        part_size=part_size[used],
        part_requests=part_requests[used],
        part_bytes=part_bytes[used],
    )


def _first_accesses(row: FilePhases, count: int) -> Ints:
    """Count first accesses in each piece, if enough requests are left to tell the order."""
    once, requests = row.unordered[0], row.counted[0]
    return np.full(count, once * count if once * count < requests else once)


def _heatmaps(log: DarshanLog) -> dict[tuple[str, str], Heatmap]:
    """Read the log's heat maps by (api, operation)."""
    order = log.header.byte_order
    # By a bug of the runtime some ranks have one bin more or less; missing bins are empty.
    head = struct.Struct(f"{order}Qqdq2Q")
    sums: dict[tuple[str, str], tuple[float, list[Ints]]] = {}
    data = log.traces.get("HEATMAP", b"")
    position = 0
    while position + head.size <= len(data):
        file_id, _, width, bins, _, _ = head.unpack_from(data, position)
        position += head.size
        if bins < 1 or position + 16 * bins > len(data) or not 0 < width < math.inf:
            return {}
        values = np.frombuffer(data, f"{order}i8", 2 * bins, position).astype(np.int64)
        position += 16 * bins
        api = log.names.get(file_id, "").removeprefix("heatmap:")
        for operation, row in (("write", values[:bins]), ("read", values[bins:])):
            sums.setdefault((api, operation), (width, []))[1].append(row)
    return {key: Heatmap(width, _padded_sum(rows)) for key, (width, rows) in sums.items()}


def _padded_sum(rows: list[Ints]) -> Ints:
    total = np.zeros(max(len(row) for row in rows), np.int64)
    for row in rows:
        total[: len(row)] += row
    return total


def _segments_of(log: DarshanLog, file_ids: set[int]) -> dict[tuple[str, str, int], Segments]:
    """Read the traced segments of some files by (api, operation, file id)."""
    found: dict[tuple[str, str, int], list[NDArray[np.void]]] = {}
    for api, module in _DXT_MODULE.items():
        if module in log.traces and module not in log.header.partial_modules:
            for file_id, operation, rows in _dxt_records(log, module):
                if file_id in file_ids and len(rows):
                    found.setdefault((api, operation, file_id), []).append(rows)
    return {
        key: Segments(*(np.concatenate([rows[name] for rows in tables]) for name in _SEGMENT))
        for key, tables in found.items()
    }


_SEGMENT = ("length", "start", "end")


def _dxt_records(
    log: DarshanLog, module: str
) -> Iterator[tuple[int, Literal["write", "read"], NDArray[np.void]]]:
    """Yield each (file id, operation, segments) of a DXT module."""
    order = log.header.byte_order
    head = struct.Struct(f"{order}Qqq64s2q")
    names = [("offset", f"{order}i8"), ("length", f"{order}i8")]
    names += [("start", f"{order}f8"), ("end", f"{order}f8")]
    if log.header.module_versions[module] >= _DXT_WITH_THREAD[module]:
        names.append(("thread", f"{order}u8"))
    segment = np.dtype(names)
    data = log.traces[module]
    position = 0
    while position + head.size <= len(data):
        file_id, _, _, _, writes, reads = head.unpack_from(data, position)
        position += head.size
        if min(writes, reads) < 0 or position + (writes + reads) * segment.itemsize > len(data):
            return
        rows = np.frombuffer(data, segment, writes + reads, position)
        position += rows.nbytes
        yield file_id, "write", rows[:writes]
        yield file_id, "read", rows[writes:]
