"""The pieces of rows between pauses, which a trace or a heat map shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from summario.lustre_components import numbered
from summario.phases.elapsed import without_pauses
from summario.phases.merge import FilePhases, stack_rows, take_rows
from summario.phases.streams import Floats, Ints, changes
from summario.phases.windows import Windows
from summario.reading.operations import Operations

# Arrays of rows, parts and windows stay in the cache of a processor.
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class Pieces:
    """The pieces of some rows of a table.

    Attributes
    ----------
    row : ndarray of int64
        The row of each piece. The pieces of a row follow one another in time.
    start, end, moved_from, moved_until : ndarray of float64
        See `FilePhases`.
    requests : ndarray of int64
        The number of requests.
    busy_share : ndarray of float64
        The share of the row's I/O time.
    part_piece, part_requests, part_bytes, part_size : ndarray of int64 (part_size: float64)
        The requests of each piece by size.
    """

    row: Ints
    start: Floats
    end: Floats
    moved_from: Floats
    moved_until: Floats
    requests: Ints
    busy_share: Floats
    part_piece: Ints
    part_size: Floats
    part_requests: Ints
    part_bytes: Ints

    def __len__(self) -> int:
        return len(self.row)

    @property
    def bytes(self) -> Ints:
        """The bytes of each piece."""
        moved = np.bincount(self.part_piece, self.part_bytes, minlength=len(self))
        return moved.astype(np.int64)

    def further(self, rows: int) -> Pieces:
        """Move the pieces to rows that are so many rows further."""
        return replace(self, row=self.row + rows)


def with_pieces(
    file_phases: FilePhases, tables: Sequence[Pieces], time_distance: float
) -> FilePhases:
    """Replace rows by their pieces, which come last; members are sorted by row."""
    if not tables:
        return file_phases
    pieces = _sorted(_joined(tables))
    whole = np.ones(len(file_phases), bool)
    whole[pieces.row] = False
    timed = _timed(_as_rows(file_phases, pieces), file_phases, pieces.row, time_distance)
    return stack_rows([take_rows(file_phases, whole), timed])


def _joined(tables: Sequence[Pieces]) -> Pieces:
    edges = np.cumsum([0, *map(len, tables)])
    part_pieces = [
        table.part_piece + first for table, first in zip(tables, edges[:-1], strict=True)
    ]
    values = {
        field.name: np.concatenate([getattr(table, field.name) for table in tables])
        for field in fields(Pieces)
    }
    return Pieces(**values | {"part_piece": np.concatenate(part_pieces)})


def _sorted(pieces: Pieces) -> Pieces:
    """Sort pieces by row."""
    order = np.argsort(pieces.row, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    values = {
        field.name: getattr(pieces, field.name)[order]
        for field in fields(Pieces)
        if not field.name.startswith("part_")
    }
    return replace(pieces, **values, part_piece=place[pieces.part_piece])


def _as_rows(file_phases: FilePhases, pieces: Pieces) -> FilePhases:
    """Copy the row of each piece, with the piece's times, requests and parts."""
    copied = {
        field.name: getattr(file_phases, field.name)[pieces.row]
        for field in fields(FilePhases)
        if not field.name.startswith(("member_", "part_"))
    }
    first, end = (
        np.searchsorted(file_phases.member_row, pieces.row, side) for side in ("left", "right")
    )
    member_row, number = numbered(end - first)
    member = first[member_row] + number
    used = pieces.part_bytes > 0
    return FilePhases(
        **copied
        | {
            "start": pieces.start,
            "end": pieces.end,
            "moved_from": pieces.moved_from,
            "moved_until": pieces.moved_until,
            "requests": pieces.requests,
            "unordered": _first_accesses(file_phases, pieces.row),
            "bytes": pieces.bytes,
            "time": copied["time"] * pieces.busy_share,
            "metadata": copied["metadata"] * pieces.busy_share,
        },
        member_row=member_row,
        member_log=file_phases.member_log[member],
        member_rank=file_phases.member_rank[member],
        part_row=pieces.part_piece[used],
        part_size=pieces.part_size[used],
        part_requests=pieces.part_requests[used],
        part_bytes=pieces.part_bytes[used],
    )


def _first_accesses(file_phases: FilePhases, row: Ints) -> Ints:
    """Count first accesses in each piece, if enough requests are left to tell the order."""
    once, pieces = file_phases.unordered[row], np.bincount(row)[row]
    in_pieces = np.maximum(once, file_phases.processes[row] * pieces)
    return np.where(in_pieces < file_phases.counted[row], in_pieces, once)


def _timed(pieces: FilePhases, whole: FilePhases, row: Ints, time_distance: float) -> FilePhases:
    """Give the pieces of each row (`row`) its open, its close and the time of its calls.

    Time in calls that is not in the pieces belongs to all of them, by their bytes: Darshan's heat
    map and traces do not have the time of fsync. If the pieces may contain pauses, they divide all
    the time in calls.
    """
    if not len(row):
        return pieces
    new = changes(row)
    is_last = np.append(new[1:], True)
    opened = np.where(new, whole.first[row], np.append(0, pieces.moved_until[:-1]))
    closed = np.where(is_last, whole.last[row], np.append(pieces.moved_from[1:], 0))
    pieces = replace(pieces, first=opened, last=closed)
    begin, end = without_pauses(pieces, time_distance)
    busy = (end - begin) * whole.shown[row]
    of_row, sums = new.cumsum() - 1, _sums(pieces.bytes, new)
    more = np.array(
        [
            max(0.0, calls - busy_of_row)
            for calls, busy_of_row in zip(
                whole.calls[row[new]].tolist(), _sums(busy, new).tolist(), strict=True
            )
        ]
    )
    return replace(pieces, calls=busy + more[of_row] * pieces.bytes / sums[of_row])


def _sums(values: NDArray[np.float64 | np.int64], new: NDArray[np.bool_]) -> Floats | Ints:
    """Add up the values of each group, which begins where it is `new`."""
    edges = [*np.flatnonzero(new).tolist(), len(values)]
    return np.array([values[first:end].sum() for first, end in pairwise(edges)])


def split_by_requests(row: int, traced: Operations, first: Ints) -> Pieces:
    """Split a row before some of its requests, which are sorted by start."""
    start, end, length = traced.start_seconds, traced.end_seconds, traced.length
    piece = np.searchsorted(first, np.arange(len(start)), side="right") - 1
    by_size = np.lexsort((length, piece))
    of_size = np.flatnonzero(changes(piece[by_size], length[by_size]))
    size, counts = length[by_size][of_size], np.diff(of_size, append=len(length))
    busy = np.add.reduceat(end - start, first)
    last = np.maximum.reduceat(end, first)
    return Pieces(
        row=np.full(len(first), row),
        start=start[first],
        end=last,
        moved_from=start[first],
        moved_until=last,
        requests=np.bincount(piece),
        busy_share=busy / max(busy.sum(), 1e-12),
        part_piece=piece[by_size][of_size],
        part_size=size.astype(np.float64),
        part_requests=counts,
        part_bytes=size * counts,
    )


def split_at_windows(file_phases: FilePhases, rows: Ints, windows: Windows) -> Iterator[Pieces]:
    """Yield the pieces of rows that begin and end in different windows of a heat map.

    A row that has fewer requests than windows with bytes has no pieces.
    """
    order = np.argsort(file_phases.part_row, kind="stable")
    sorted_rows = file_phases.part_row[order]
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[begin : begin + _ROWS_AT_ONCE]
        first, end = (np.searchsorted(sorted_rows, some, side) for side in ("left", "right"))
        has_parts = first < end
        some = some[has_parts]
        of_row, number = numbered((end - first)[has_parts])
        part = order[first[has_parts][of_row] + number]
        if len(some):
            yield _split_some(file_phases, some, of_row, part, windows)


def _split_some(
    file_phases: FilePhases, rows: Ints, part_row: Ints, part: Ints, windows: Windows
) -> Pieces:
    """Split rows, whose parts are given by their rows; arrays have a column for each window."""
    first, last = windows.first_and_last(file_phases.start[rows], file_phases.end[rows])
    count = (last - first + 1)[:, np.newaxis]
    number = np.arange(count.max())
    window = np.minimum(first[:, np.newaxis] + number, last[:, np.newaxis])
    # A row moved bytes at its start and at its end, so these windows have at least one byte.
    is_edge = (number == 0) | (number == count - 1)
    moved = np.where(number < count, np.maximum(windows.moved[window], is_edge), 0)
    start = np.where(number == 0, file_phases.start[rows][:, np.newaxis], windows.starts[window])
    end = np.where(number == count - 1, file_phases.end[rows][:, np.newaxis], windows.ends[window])
    part_requests, part_bytes = file_phases.part_requests[part], file_phases.part_bytes[part]
    first_part = np.flatnonzero(changes(part_row))
    in_parts = np.add.reduceat(part_requests, first_part)
    are_enough = (np.count_nonzero(moved, axis=1) <= file_phases.requests[rows]) & (in_parts > 0)
    share = moved / moved.sum(axis=1, keepdims=True)
    is_after = number >= count - 1
    until = np.where(is_after, 1, np.cumsum(share, axis=1))
    requests_until = np.rint(until[part_row] * part_requests[:, np.newaxis]).astype(np.int64)
    # A request is not split, so the bytes of a piece follow from its requests.
    of_request = (part_bytes / part_requests)[:, np.newaxis]
    bytes_until = np.rint(requests_until * of_request).astype(np.int64)
    bytes_until = np.where(is_after[part_row], part_bytes[:, np.newaxis], bytes_until)
    requests_of_part, bytes_of_part = (
        np.diff(each, axis=1, prepend=0) for each in (requests_until, bytes_until)
    )
    requests = np.add.reduceat(requests_of_part, first_part, axis=0)
    kept = (requests > 0) & are_enough[:, np.newaxis]
    share = _shares_of(share, kept)
    # Reads at the end of a file move no bytes, so they are in no part. They make no window of
    # their own: the windows that move bytes share them out.
    empty = (file_phases.requests[rows] - in_parts)[:, np.newaxis]
    empty_until = np.rint(np.cumsum(share, axis=1) * empty).astype(np.int64)
    requests += np.diff(empty_until, axis=1, prepend=0)
    piece = np.cumsum(kept).reshape(kept.shape) - 1
    of_piece = kept[part_row]
    pieces = Pieces(
        row=rows[kept.nonzero()[0]],
        start=start[kept],
        end=end[kept],
        moved_from=start[kept],
        moved_until=end[kept],
        requests=requests[kept],
        busy_share=share[kept],
        part_piece=piece[part_row][of_piece],
        part_size=file_phases.part_size[part][of_piece.nonzero()[0]],
        part_requests=requests_of_part[of_piece],
        part_bytes=bytes_of_part[of_piece],
    )
    return _within_bins(pieces, file_phases, windows, window[kept])


def _shares_of(share: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Let the kept windows of each row share out all that the others had."""
    sums = np.array([each[of_row].sum() for each, of_row in zip(share, kept, strict=True)])
    shares: Floats = share * kept / np.where(sums > 0, sums, 1)[:, np.newaxis]
    return shares


def _within_bins(pieces: Pieces, file_phases: FilePhases, windows: Windows, window: Ints) -> Pieces:
    """Estimate when pieces moved bytes in the first and last bin of their windows (`window`).

    A piece of one or two bins takes as long as its share of the row's calls, because the bins do
    not tell how long it took.
    """
    if not len(pieces):
        return pieces
    from_bin, until_bin = pieces.start == windows.starts[window], pieces.end == windows.ends[window]
    begin, end = windows.moved_from[window], windows.moved_until[window]
    # The estimates are of all files together, so this row may end before or begin after them.
    begin = np.where(from_bin & (begin <= pieces.end), begin, pieces.start)
    end = np.where(until_bin & (end >= pieces.start), end, pieces.end)
    is_short = file_phases.shown[pieces.row]
    is_short &= pieces.end - pieces.start < 2.5 * windows.bin_seconds
    moved, new = pieces.bytes, changes(pieces.row)
    of_row = np.add.reduceat(moved, np.flatnonzero(new))[new.cumsum() - 1]
    calls = file_phases.calls[pieces.row] * moved / of_row
    end = np.where(is_short & until_bin, np.minimum(end, begin + calls), end)
    begin = np.where(is_short & from_bin, np.maximum(begin, end - calls), begin)
    return replace(pieces, moved_from=begin, moved_until=end)
