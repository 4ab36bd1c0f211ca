"""Puts the reads and the writes of a server on common intervals.

Queries add up the bytes and the seconds of all samples of a time. If reads and writes had different
intervals that overlap, their time would count twice, and the server would seem half as busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CommonIntervals(NamedTuple):
    """Servers, times in µs, shape (n,), and the values of these intervals by column."""

    server: Ints
    start_us: Ints
    end_us: Ints
    values: Mapping[str, Floats]


class Intervals(NamedTuple):
    """Values of intervals of servers, shape (n,); those of a server do not overlap."""

    server: Ints
    start_us: Ints
    end_us: Ints
    values: Floats


def on_common_intervals(columns: Mapping[str, Intervals]) -> CommonIntervals:
    """Cut the intervals of all columns where one of a column begins or ends.

    The pieces of an interval have its value in proportion to their time, in whole numbers that add
    up to the value. A column without an interval has NaN.
    """
    times = np.unique(
        np.concatenate([time for each in columns.values() for time in (each.start_us, each.end_us)])
    )

    def keys(server: Ints, time_us: Ints) -> Ints:
        return server * len(times) + np.searchsorted(times, time_us)

    edges = np.unique(
        np.concatenate(
            [
                keys(each.server, time)
                for each in columns.values()
                for time in (each.start_us, each.end_us)
            ]
        )
    )
    values = {}
    for name, each in columns.items():
        first = np.searchsorted(edges, keys(each.server, each.start_us))
        number = np.searchsorted(edges, keys(each.server, each.end_us)) - first
        whole = np.repeat(np.arange(len(first)), number)
        place = np.arange(len(whole)) + np.repeat(first - np.cumsum(number) + number, number)
        start, length = each.start_us[whole], (each.end_us - each.start_us)[whole]
        until_start, until_end = (
            np.rint(each.values[whole] * ((times[edges[at] % len(times)] - start) / length))
            for at in (place, place + 1)
        )
        values[name] = np.full(len(edges), np.nan)
        values[name][place] = until_end - until_start
    server, rank = np.divmod(edges, len(times))
    # Between the last time of a server and the first one of another one, no column has a value.
    ends = np.append(times[rank], 0)[1:]
    return CommonIntervals(server, times[rank], ends, values)
