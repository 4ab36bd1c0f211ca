"""The windows between the pauses that heat maps of one api and operation show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from summario.phases.streams import Floats, Ints, changes
from summario.reading.heatmap import Heatmap

# Times of bins are multiples of a width, computed with rounding errors.
_BIN_ROUNDING_SECONDS = 1e-6


@dataclass(frozen=True)
class Bins:
    """The bins of heat maps in which bytes moved, from the beginning to the end of the heat maps.

    They are in the order of `start`, in seconds since the run's start. The first and the last bin
    have no length and no bytes (`moved`): they are the beginning and the end of the heat maps.
    """

    start: Floats
    end: Floats
    moved: Ints
    bin_seconds: float


@dataclass(frozen=True)
class Windows:
    """The windows of a heat map: the times between its pauses, in seconds.

    The first start and the last end are infinite. `moved_from` and `moved_until` estimate when
    bytes moved, because bytes may fill only a part of the first and the last bin of a window.
    `moved` lacks the bytes of files that were used in only one window.
    """

    starts: Floats
    ends: Floats
    moved_from: Floats
    moved_until: Floats
    moved: Floats
    bin_seconds: float

    def first_and_last(self, start: Floats, end: Floats) -> tuple[Ints, Ints]:
        """Find the windows in which rows begin and end; `first` < `last` if a pause is between.

        A start within a pause belongs to the window after it, an end to the window before it.
        """
        first = np.searchsorted(self.ends, start, side="right")
        return first, np.searchsorted(self.starts, end, side="left") - 1


def bins_of(heatmaps: Sequence[Heatmap | None], delays_seconds: Sequence[float]) -> Bins:
    """List the bins of the heat maps of logs in which bytes moved."""
    starts, ends, moved, edges, widths = [], [], [], [], []
    for heatmap, delay in zip(heatmaps, delays_seconds, strict=True):
        if heatmap is not None:
            total = heatmap.bytes.sum(axis=0)
            used = np.flatnonzero(total)
            starts.append(delay + used * heatmap.bin_seconds)
            ends.append(delay + (used + 1) * heatmap.bin_seconds)
            moved.append(total[used])
            edges += [delay, delay + len(total) * heatmap.bin_seconds]
            widths.append(heatmap.bin_seconds)
    begin, last = [min(edges)], [max(edges)]
    start, end = np.concatenate([begin, *starts, last]), np.concatenate([begin, *ends, last])
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    [first] = changes(start, end).nonzero()
    return Bins(
        start=start[first],
        end=end[first],
        moved=np.add.reduceat(np.concatenate([[0], *moved, [0]])[order], first),
        bin_seconds=max(widths),
    )


def windows_between(bins: Bins, time_distance: float) -> Windows | None:
    """Find the windows with the bytes of all files between long pauses; None without a pause."""
    first = first_after_pauses(bins.start, bins.end, time_distance + _BIN_ROUNDING_SECONDS)
    if len(first) == 1:
        return None
    latest = np.maximum.accumulate(bins.end)
    last = np.append(first[1:], len(bins.start)) - 1
    moved = bins.moved.astype(np.float64)
    widths = bins.end - bins.start
    late = widths[first] * (1 - _used_shares(moved, first, first))
    early = widths[last] * (1 - _used_shares(moved, first, last))
    return Windows(
        starts=np.append(-np.inf, bins.start[first[1:]]),
        ends=np.append(latest[first[1:] - 1], np.inf),
        moved_from=np.minimum(bins.start[first] + late, bins.start[np.minimum(first + 1, last)]),
        moved_until=np.maximum(bins.end[last] - early, latest[np.maximum(last - 1, first)]),
        moved=np.add.reduceat(moved, first),
        bin_seconds=bins.bin_seconds,
    )


def _used_shares(moved: Floats, first: Ints, edge: Ints) -> Floats:
    """Estimate the used share of a bin at the edge of each window, by the mean of its other bins.

    `first` and `edge` have the row of each window's first bin and of the bin at the edge.
    """
    bins = np.add.reduceat((moved > 0).astype(np.int64), first)
    others = np.add.reduceat(moved, first) - moved[edge]
    mean = others / np.maximum(bins - 1, 1)
    ratios = np.divide(moved[edge], mean, out=np.ones(len(mean)), where=mean > 0)
    shares: Floats = np.minimum(ratios, 1)
    return shares


def first_after_pauses(start: Floats, end: Floats, time_distance: float) -> Ints:
    """Find the first row, and each row after a pause, in rows sorted by start."""
    latest = np.maximum.accumulate(end)
    after: Ints = np.flatnonzero(start[1:] > latest[:-1] + time_distance) + 1
    return np.append(0, after)
