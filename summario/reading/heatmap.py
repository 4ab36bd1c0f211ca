"""Darshan's HEATMAP, by darshan-heatmap-log-format.h: each process' bytes in each bin of time."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS
from ioncast_base.limits import LONGEST_SECONDS, MOST_BYTES
from summario.reading.log import DarshanLog

# Record id, rank, seconds of a bin, number of bins, and two pointers that mean nothing in a log.
_HEAD_WORDS = 6
_HEAD_BYTES = 8 * _HEAD_WORDS
_WIDTH_BYTE = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Heatmap:
    """Bytes by process (`rank`) and bin, from the job's start on, of one api and operation."""

    bin_seconds: float
    rank: Ints
    bytes: Ints


def heatmaps_of(log: DarshanLog) -> dict[tuple[str, str], Heatmap]:
    """Read the heat maps by (api, operation).

    A heat map cannot be used in part, so damage anywhere means that the log has none.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> log = read_log("tests/summario/fixtures/reopen-same-5x.darshan")
    >>> heatmap = heatmaps_of(log)["POSIX", "write"]
    >>> heatmap.bytes.shape, int(heatmap.bytes.sum())
    ((24, 163), 251658240)
    """
    order, data = log.header.byte_order, log.traces.get("HEATMAP", b"")
    positions = _record_positions(data, order)
    if not positions:
        return {}
    words = np.frombuffer(data, f"{order}i8", len(data) // 8)
    first = np.array(positions) // 8
    heads = words[first[:, np.newaxis] + np.arange(4)].astype(np.int64, copy=False)
    ids, rank, bins = heads[:, 0].astype(np.uint64), heads[:, 1], heads[:, 3]
    # By a bug of the runtime some ranks have one bin more or less; missing bins are empty.
    if np.ptp(bins) > 1 or rank.min() < 0 or rank.max() >= log.job.nprocs:
        return {}
    heatmaps: dict[tuple[str, str], Heatmap] = {}
    for file_id in dict.fromkeys(ids.tolist()):
        api = log.names.get(file_id, "").removeprefix("heatmap:")
        if (api, "write") in heatmaps:
            return {}
        if api in APIS:
            rows = np.flatnonzero(ids == file_id)
            widths = heads[rows, 2].view(np.float64)
            at = first[rows] + _HEAD_WORDS
            write = _padded(words, at, bins[rows])
            read = _padded(words, at + bins[rows], bins[rows])
            if np.ptp(widths) > 0 or not _are_possible(write) or not _are_possible(read):
                return {}
            width = float(widths[0])
            heatmaps[api, "write"] = Heatmap(width, rank[rows], write)
            heatmaps[api, "read"] = Heatmap(width, rank[rows], read)
    return heatmaps


def _record_positions(data: bytes, byte_order: str) -> array[int]:
    """Find where each record begins, in bytes; none if the data are not whole records."""
    width_and_bins_at = struct.Struct(f"{byte_order}dq").unpack_from
    positions = array("q")
    position = 0
    while position + _HEAD_BYTES <= len(data):
        width, bins = width_and_bins_at(data, position + _WIDTH_BYTE)
        end = position + _HEAD_BYTES + 16 * bins
        if bins < 1 or end > len(data) or not 0 < width * bins < LONGEST_SECONDS:
            return array("q")
        positions.append(position)
        position = end
    return positions if position == len(data) else array("q")


def _are_possible(table: Ints) -> bool:
    return bool(table.min() >= 0 and table.sum(dtype=np.float64) <= MOST_BYTES)


def _padded(words: Ints, at: Ints, bins: Ints) -> Ints:
    """Copy `bins` words from each place; a row that lacks the last bin ends with a zero."""
    most = bins.max()
    table = words.take(at[:, np.newaxis] + np.arange(most), mode="clip")
    table[bins < most, -1] = 0
    return table.astype(np.int64, copy=False)
