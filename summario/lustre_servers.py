"""The servers (OSTs) that hold a range of bytes of a file on Lustre."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from summario.lustre_components import END_OF_FILE, LustreComponents, numbered
from summario.reading.operations import Operations

_LARGEST = np.iinfo(np.int64).max
# Each request has a row for each server of its file, which may be thousands.
_REQUESTS_AT_ONCE = 100_000

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ServerBytes:
    """The bytes (at least 1) of each segment on each OST that it touches; OST -1 is not known."""

    segment: Ints
    ost: Ints
    bytes: Ints


def bytes_of_servers(
    components: LustreComponents, file_id: NDArray[np.uint64], offset: Ints, length: Ints
) -> ServerBytes:
    """Divide segments of files among the OSTs that hold their bytes.

    A segment touches the bytes from `offset` to `offset + length - 1`; none if its length is 0 or
    its offset is negative (not known). Stripes count from the beginning of the file, in every
    component. Of mirrored files only the first mirror counts. Bytes outside the components, on a
    metadata server or of a file without a layout are on no OST.

    The result has up to `stripe_count` rows for each segment, so millions of segments of files with
    thousands of stripes belong in several calls.
    """
    layout = first_mirrors(components)
    segment, row = _pairs(layout.file_id, file_id)
    known = (length[segment] > 0) & (offset[segment] >= 0)
    segment, row = segment[known], row[known]
    extent_end = np.where(layout.extent_end[row] == END_OF_FILE, _LARGEST, layout.extent_end[row])
    start = np.maximum(offset[segment], layout.extent_start[row])
    end = np.minimum(_ends(offset[segment], length[segment]), extent_end)
    on_osts = (start < end) & (layout.stripe_count[row] > 0)
    segment, row, start, end = segment[on_osts], row[on_osts], start[on_osts], end[on_osts]
    return _merged(*_by_stripe(layout, segment, row, start, end))


def bytes_of_requests(components: LustreComponents, trace: Operations) -> Iterator[ServerBytes]:
    """Yield the bytes of traced requests, in parts; `segment` is the index in the trace."""
    for first in range(0, len(trace), _REQUESTS_AT_ONCE):
        part = slice(first, first + _REQUESTS_AT_ONCE)
        ranges = trace.offset[part], trace.length[part]
        found = bytes_of_servers(components, trace.file_id[part], *ranges)
        yield replace(found, segment=found.segment + first)


def first_mirrors(components: LustreComponents) -> LustreComponents:
    """Keep one record of each file, and of its components the first mirror; sort by file.

    The record with most components counts: processes that open a file later may see more of them.
    """
    first = np.flatnonzero(components.component == 0)
    count = np.diff(np.append(first, len(components)))
    order = np.lexsort((first, -count, components.file_id[first]))
    ids = components.file_id[first][order]
    new = np.ones(len(ids), bool)
    new[1:] = ids[1:] != ids[:-1]
    chosen = order[new]
    record, number = numbered(count[chosen])
    row = first[chosen][record] + number
    mirror = components.mirror_id
    return components.take(row[mirror[row] == mirror[first[chosen]][record]])


def _pairs(sorted_ids: NDArray[np.uint64], ids: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """List the pairs (index of an id, index of an equal sorted id)."""
    left = np.searchsorted(sorted_ids, ids, side="left")
    segment, number = numbered(np.searchsorted(sorted_ids, ids, side="right") - left)
    return segment, left[segment] + number


def _ends(offset: Ints, length: Ints) -> Ints:
    """Add lengths to offsets; the largest number if the sum is larger."""
    ends: Ints = offset + np.minimum(length, _LARGEST - offset)
    return ends


def _by_stripe(
    layout: LustreComponents, segment: Ints, row: Ints, start: Ints, end: Ints
) -> tuple[Ints, Ints, Ints]:
    """Divide ranges of bytes, each in one component, among the stripes of the component."""
    size, count = layout.stripe_size_bytes[row], layout.stripe_count[row]
    touched = np.minimum((end - 1) // size - start // size + 1, count)
    piece, number = numbered(touched)
    size, count = size[piece], count[piece]
    stripe = (start[piece] // size + number) % count
    bytes_ = _bytes_before(end[piece], stripe, size, count)
    bytes_ -= _bytes_before(start[piece], stripe, size, count)
    return segment[piece], layout.ost_ids[layout.first_ost[row][piece] + stripe], bytes_


def _bytes_before(position: Ints, stripe: Ints, size: Ints, count: Ints) -> Ints:
    """Count the bytes before a position of the file that are on a stripe."""
    width = size * count
    whole: Ints = position // width * size
    whole += np.clip(position % width - stripe * size, 0, size)
    return whole


def _merged(segment: Ints, ost: Ints, bytes_: Ints) -> ServerBytes:
    """Add up the bytes of one segment on one OST, which may have several of its stripes."""
    order = np.lexsort((ost, segment))
    segment, ost = segment[order], ost[order]
    new = np.ones(len(order), bool)
    new[1:] = (segment[1:] != segment[:-1]) | (ost[1:] != ost[:-1])
    first = np.flatnonzero(new)
    total = np.add.reduceat(bytes_[order], first) if len(first) else bytes_
    return ServerBytes(segment[first], ost[first], total)
