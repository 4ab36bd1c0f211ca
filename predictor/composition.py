"""Curves of phases to the curve of their application.

An application's time is the sum of its phases' times, so what is averaged is time:
time(n) = Σ bytes_i / bandwidth_i(n), bandwidth(n) = Σ bytes_i / time(n). A measured curve
is its repetitions, not their mean, so the sum is drawn many times over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

MIB = 1 << 20
DRAWS = 2000
_SEED = 9366


@dataclass(frozen=True)
class Bandwidth:
    """A distribution of bandwidth in MiB/s; `mean` is total bytes over mean time."""

    p10: float
    median: float
    mean: float
    p90: float


@dataclass(frozen=True)
class Point:
    """What is expected with a number of I/O nodes: bandwidth, and mean time in seconds."""

    io_nodes: int
    bandwidth_mib_s: Bandwidth
    time_s: float


Work = tuple[int, Mapping[int, Sequence[float]]]


def compose(work: Sequence[Work], io_nodes: Sequence[int]) -> list[Point]:
    """Compose the curve of an application.

    Parameters
    ----------
    work : sequence of (int, mapping)
        Bytes of each part, and its benchmark's repetitions in MiB/s by I/O nodes.
    io_nodes : sequence of int
        Which points to compose; every part must have repetitions there.

    Returns
    -------
    list of Point
        One per entry of `io_nodes`. Repetitions are drawn independently for each part,
        with a fixed seed.

    Examples
    --------
    >>> [point] = compose([(100 << 20, {0: [50.0]}), (100 << 20, {0: [100.0]})], [0])
    >>> round(point.bandwidth_mib_s.mean, 1), point.time_s
    (66.7, 3.0)
    """
    total_mib = sum(moved for moved, _ in work) / MIB
    points = []
    for n in io_nodes:
        random = np.random.default_rng(_SEED)
        time = np.zeros(DRAWS)
        for moved, repetitions in work:
            time += moved / MIB / random.choice(np.asarray(repetitions[n], float), DRAWS)
        # Exactly, so that no luck of the draw decides between equals.
        mean_time = math.fsum(
            moved / MIB * fmean(1 / bandwidth for bandwidth in repetitions[n])
            for moved, repetitions in work
        )
        p10, median, p90 = np.percentile(total_mib / time, [10, 50, 90])
        points.append(
            Point(
                io_nodes=n,
                bandwidth_mib_s=Bandwidth(
                    float(p10), float(median), total_mib / mean_time, float(p90)
                ),
                time_s=mean_time,
            )
        )
    return points
