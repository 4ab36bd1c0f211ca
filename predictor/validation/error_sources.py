"""The sources of a prediction's error, from litmus tests on an application's reruns.

After Isakov et al., "A taxonomy of error sources in HPC I/O machine learning models" (SC'22). No
prediction can avoid noise. The other error is attributed to drift and to the matches of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import Kind
from predictor.validation.against_reruns import Expected, Reruns, error, leave_one_out_errors

_Name = TypeVar("_Name")

# A trend is a drift if its p-value is smaller.
SIGNIFICANCE = 0.05
# With fewer orders of the runs, no p-value can be smaller: an order and its reverse count both.
_FEWEST_ORDERS = 2 / SIGNIFICANCE
_PERMUTATIONS = 4999
_SEED = 9366
_TWO = 2
_MISSING = ("unknown", "model")


@dataclass(frozen=True)
class PartForecast:
    """The prediction for one part of a phase; seconds by number of I/O nodes, empty if unknown."""

    kind: Kind
    match: str
    bytes: int
    time_s: Mapping[int, float]


@dataclass(frozen=True)
class RerunTrend:
    """A trend of the bandwidth of reruns over time.

    `change` is that over the longest time between two reruns of a cell: 0.1 is 10 % faster.
    `per_second` is the slope of the natural logarithm. `p_value` is the probability that chance
    makes a slope as steep.
    """

    change: float
    per_second: float
    p_value: float

    @property
    def named(self) -> bool:
        """Whether the trend is more than noise."""
        return self.p_value < SIGNIFICANCE


@dataclass(frozen=True)
class ErrorSources:
    """The mean error of some reruns, and the parts that add up to it.

    `noise` is the error of the repetitions as predictions of each other; None if no cell has two.
    `missing_pattern` and `poor_match` are shares of the other error: by the predicted time in parts
    that are unknown or predicted by the model alone, and in parts for which another benchmark
    stands in. `drift` is the growth of the error since the first rerun of each cell, if a trend is
    more than noise; None if that cannot be tested.
    """

    runs: int
    total: float
    noise: float | None
    missing_pattern: float | None
    poor_match: float | None
    drift: float | None
    unexplained: float
    trend: RerunTrend | None = None


def explain(
    expected: Mapping[int, Expected],
    reruns: Reruns,
    parts: Sequence[PartForecast],
    times_s: Reruns | None = None,
) -> ErrorSources | None:
    """Split an application's mean error by where it comes from; None if no rerun has a prediction.

    Reruns are MiB/s by number of I/O nodes. Without their starts, in seconds since any moment,
    drift cannot be tested.
    """
    means = {n: expected[n].mean for n in sorted(expected) if n in reruns}
    if not means:
        return None
    runs: dict[int, Sequence[float]] = {n: reruns[n] for n in means}
    times = {n: times_s[n] for n in means} if times_s else {}
    total = _mean_error(means, runs)
    trend = find_drift(runs, times) if times else None
    drift = None if trend is None else 0.0
    if trend is not None and trend.named:
        steady = without_drift(runs, times, trend)
        # A drift towards the prediction does not cause an error.
        if _mean_error(means, steady) < total:
            runs, drift = steady, total - _mean_error(means, steady)
    cells = [_cell(means[n], values, match_shares(parts, n)) for n, values in runs.items()]
    weights = [len(values) for values in runs.values()]
    noise, missing, poor = np.average(cells, axis=0, weights=weights).tolist()
    return ErrorSources(
        runs=sum(weights),
        total=total,
        noise=noise if max(weights) >= _TWO else None,
        missing_pattern=missing,
        poor_match=poor,
        drift=drift,
        unexplained=max(total - math.fsum((noise, missing, poor, drift or 0.0)), 0.0),
        trend=trend,
    )


def pool_sources(several: Iterable[ErrorSources]) -> ErrorSources | None:
    """Average the error sources of several applications; None if there are no applications."""
    all_ = list(several)
    if not all_:
        return None
    runs = sum(one.runs for one in all_)

    def mean(name: str) -> float | None:
        """Average over all runs; None if the value is unknown for all applications."""
        values = [(one.runs, getattr(one, name)) for one in all_]
        if all(value is None for _, value in values):
            return None
        return math.fsum(count * (value or 0.0) for count, value in values) / runs

    return ErrorSources(
        runs=runs,
        total=mean("total") or 0.0,
        noise=mean("noise"),
        missing_pattern=mean("missing_pattern") or 0.0,
        poor_match=mean("poor_match") or 0.0,
        drift=mean("drift"),
        unexplained=mean("unexplained") or 0.0,
    )


def find_drift(reruns: Reruns, times_s: Reruns) -> RerunTrend | None:
    """Test whether reruns became faster or slower while they ran.

    The slope is the least-squares one of the logarithm of bandwidth within the cells. Its p-value
    is the share of 4,999 random orders of the runs within their cells (fixed seed) with a slope as
    steep. The result is None if there are too few runs, or all started at the same time.
    """
    logs = {n: _centred([math.log(value) for value in values]) for n, values in reruns.items()}
    times = {n: _centred(times_s[n]) for n in reruns}
    spread = sum(float(time @ time) for time in times.values())
    orders = math.prod(math.factorial(len(values)) for values in reruns.values())
    if orders < _FEWEST_ORDERS or not spread > 0:
        return None
    random = np.random.default_rng(_SEED)
    moment = sum(float(times[n] @ logs[n]) for n in reruns)
    chance = np.array(
        [
            sum(float(times[n] @ random.permutation(logs[n])) for n in reruns)
            for _ in range(_PERMUTATIONS)
        ]
    )
    # Equal slopes may differ by rounding.
    as_large = int(np.sum(np.abs(chance) >= abs(moment) * (1 - 1e-9)))
    longest_s = max(max(starts) - min(starts) for starts in times_s.values())
    return RerunTrend(
        change=math.expm1(moment / spread * longest_s),
        per_second=moment / spread,
        p_value=(1 + as_large) / (1 + _PERMUTATIONS),
    )


def without_drift(reruns: Reruns, times_s: Reruns, drift: RerunTrend) -> dict[int, Sequence[float]]:
    """Compute the bandwidths as if each run had started with the first of its cell."""
    return {
        n: tuple(
            value * math.exp(drift.per_second * (min(times_s[n]) - time))
            for value, time in zip(values, times_s[n], strict=True)
        )
        for n, values in reruns.items()
    }


def match_shares(parts: Sequence[PartForecast], io_nodes: int) -> dict[str, float]:
    """Compute the shares of the predicted time by kind of match (see `_times`)."""
    return _shares((part.match, time) for part, time in _times(parts, io_nodes))


def errors_by_kind(
    compared: Iterable[tuple[Sequence[PartForecast], Mapping[int, Sequence[float]]]],
) -> dict[Kind, tuple[float, float]]:
    """Compute the number and the mean error of reruns by the kinds of their phases.

    A rerun counts for each kind in proportion to the kind's share of its predicted time.
    """
    weights: dict[Kind, float] = {}
    sums: dict[Kind, float] = {}
    for parts, errors in compared:
        for n, values in errors.items():
            shares = _shares((part.kind, time) for part, time in _times(parts, n))
            for kind, share in shares.items():
                weights[kind] = weights.get(kind, 0.0) + share * len(values)
                sums[kind] = sums.get(kind, 0.0) + share * math.fsum(values)
    return {kind: (weights[kind], sums[kind] / weights[kind]) for kind in sorted(weights)}


def _cell(mean: float, runs: Sequence[float], shares: Mapping[str, float]) -> list[float]:
    """Split a cell's mean error: noise, missing pattern, poor match."""
    off = fmean(error(mean, run) for run in runs)
    noise = min(off, fmean(leave_one_out_errors(runs))) if len(runs) >= _TWO else 0.0
    missing = math.fsum(shares.get(kind, 0.0) for kind in _MISSING)
    return [noise, (off - noise) * missing, (off - noise) * shares.get("interpolated", 0.0)]


def _times(parts: Sequence[PartForecast], io_nodes: int) -> list[tuple[PartForecast, float]]:
    """Compute each part's predicted time.

    Unknown parts get the speed of the others together, because the curve leaves them out.
    """
    known = [part for part in parts if io_nodes in part.time_s]
    seconds_per_byte = math.fsum(part.time_s[io_nodes] for part in known) / max(
        sum(part.bytes for part in known), 1
    )
    return [(part, part.time_s.get(io_nodes, part.bytes * seconds_per_byte)) for part in parts]


def _shares(values: Iterable[tuple[_Name, float]]) -> dict[_Name, float]:
    """Compute each name's share of the sum of all values."""
    sums: dict[_Name, float] = {}
    for name, value in values:
        sums[name] = sums.get(name, 0.0) + value
    total = math.fsum(sums.values())
    return {name: value / total for name, value in sums.items()} if total else {}


def _mean_error(means: Mapping[int, float], runs: Reruns) -> float:
    return fmean(error(means[n], run) for n, values in runs.items() for run in values)


def _centred(values: Sequence[float]) -> NDArray[np.float64]:
    mean = fmean(values)
    return np.array([value - mean for value in values])
