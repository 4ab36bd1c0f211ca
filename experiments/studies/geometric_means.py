"""The geometric mean of ratios, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.stats import t as student


class MeanChange(NamedTuple):
    """A geometric mean of ratios minus 1, with Student's interval of 95 %; None for one ratio."""

    mean: float
    low: float | None
    high: float | None


def mean_change(ratios: Sequence[float]) -> MeanChange:
    """Average at least one ratio."""
    logs = [log(ratio) for ratio in ratios]
    mean = fmean(logs)
    if len(logs) == 1:
        return MeanChange(expm1(mean), None, None)
    half = student.ppf(0.975, len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    return MeanChange(expm1(mean), expm1(mean - half), expm1(mean + half))
