"""Spans: times in which a rank, or a range of ranks, read or wrote, few enough for a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ioncast.timelines.colours import UNKNOWN_OST
from summario.reading.operations import UNKNOWN_OFFSET, Operations

# More spans make a browser slow.
MOST_SPANS = 5_000
MOST_ROWS = 128
_COLUMNS = 1_024
# With fewer bins of time, pauses between bursts vanish.
_ENOUGH_COLUMNS = 256

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Spans:
    """A table with a row for each span, by row of the drawing and then by time.

    Attributes
    ----------
    row : array of int
        The row of the drawing.
    start_seconds, end_seconds : array of float
        Since the job's start.
    requests, bytes : array of int
        The number and the bytes of the requests that start in the span.
    offset : array of int
        The offset of a span's only request; `UNKNOWN_OFFSET` of several requests.
    ost : array of int
        The server of a span's only request, as `servers_of` tells it; `UNKNOWN_OST` of several.
    named : array of int
        A bit for each mask of `spans_of` that selects a request of the span.
    bin_seconds : float
        The resolution; 0 if each request is a span.
    is_coarse : bool
        Whether bins are so long that pauses between bursts vanish.
    """

    row: Ints
    start_seconds: Floats
    end_seconds: Floats
    requests: Ints
    bytes: Ints
    offset: Ints
    ost: Ints
    named: Ints
    bin_seconds: float
    is_coarse: bool = False

    def __len__(self) -> int:
        return len(self.row)


def units_of_a_row(number: int) -> int:
    """Choose how many of a number of ranks, or bytes of a file, share a row."""
    return max(-(-number // MOST_ROWS), 1)


def rows_of(values: Ints, units: int) -> Ints:
    """Find the row of ranks or offsets; a hostile log may name some that the run does not have."""
    rows: Ints = np.clip(values // units, 0, MOST_ROWS - 1)
    return rows


def spans_of(
    operations: Operations,
    row: Ints,
    most: int = MOST_SPANS,
    masks: Sequence[Bools] = (),
    ost: Ints | None = None,
) -> Spans:
    """Make spans of requests, each in a row of the drawing, from 0 to `MOST_ROWS` - 1.

    Up to `most` requests are a span each. More are joined: the time is cut into bins, and bins in
    which the same row is busy, one after the other, are a span. Bins get longer until the spans
    are few enough.

    Notes
    -----
    Starts less ends, counted by bin and added up, give the requests that are under way in each
    bin. So the time is that of two counts, however long requests are.
    """
    named = np.zeros(len(row), np.int64)
    for place, mask in enumerate(masks):
        named |= mask.astype(np.int64) << place
    if len(operations) <= most:
        order = np.lexsort((operations.start_seconds, row))
        return Spans(
            row[order],
            operations.start_seconds[order],
            operations.end_seconds[order],
            np.ones(len(row), np.int64),
            operations.length[order],
            operations.offset[order],
            np.full(len(row), UNKNOWN_OST) if ost is None else ost[order],
            named[order],
            0.0,
        )
    columns = _COLUMNS
    spans = _joined(operations, row, named, columns)
    while len(spans) > most and columns > 1:
        columns //= 2
        spans = _joined(operations, row, named, columns)
    return replace(spans, is_coarse=columns < _ENOUGH_COLUMNS)


def _joined(operations: Operations, row: Ints, named: Ints, columns: int) -> Spans:
    first_s, last_s = operations.start_seconds.min(), operations.end_seconds.max()
    width_s = float(last_s - first_s) / columns or 1.0
    start = _bins(operations.start_seconds - first_s, width_s, columns)
    # An end at the edge of two bins belongs to the first one.
    end = np.maximum(start, np.ceil((operations.end_seconds - first_s) / width_s).astype(int) - 1)
    end = np.minimum(end, columns - 1)
    # One more bin in each row, so that nothing goes on into the next row.
    width, rows = columns + 1, int(row.max()) + 1
    began = np.bincount(row * width + start, minlength=rows * width)
    ended = np.bincount(row * width + end + 1, minlength=rows * width)
    is_busy = np.concatenate([[False], np.cumsum(began - ended) > 0, [False]])
    change = np.flatnonzero(is_busy[1:] != is_busy[:-1])
    first, beyond = change[::2], change[1::2]
    moved = np.bincount(row * width + start, operations.length, rows * width)
    requests = np.add.reduceat(began, first) if len(first) else began[:0]
    span = np.searchsorted(first, row * width + start, "right") - 1
    bits = np.zeros(len(first), np.int64)
    if named.any():
        np.bitwise_or.at(bits, span, named)
    return Spans(
        first // width,
        first_s + first % width * width_s,
        first_s + ((beyond - 1) % width + 1) * width_s,
        requests,
        np.add.reduceat(moved, first).astype(np.int64) if len(first) else began[:0],
        np.full(len(requests), UNKNOWN_OFFSET),
        np.full(len(requests), UNKNOWN_OST),
        bits,
        width_s,
    )


def _bins(seconds: Floats, width_s: float, columns: int) -> Ints:
    return np.minimum((seconds / width_s).astype(np.int64), columns - 1)
