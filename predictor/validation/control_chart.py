"""An EWMA control chart: detects when observations move away from what was predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

# The weight of the newest value in the average.
_WEIGHT = 0.2
# Limit of the average, and bound of a value, in standard deviations.
_LIMIT = 3.0
# An average at its limit may exceed it by this much through rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Chart:
    """The moving average of a series and its limit.

    Attributes
    ----------
    average : float
        The exponentially weighted moving average, in standard deviations of a value.
    limit : float
        The average stays between -limit and limit as long as chance alone moves it.
    since : int or None
        Index of the value with which the average last crossed the limit; None if it is within.
    """

    average: float
    limit: float
    since: int | None


def moving_averages(values: Iterable[float]) -> list[float]:
    """Compute the exponentially weighted moving average after each value.

    An average is 0.2 of the value plus 0.8 of the last average. The first average before any
    value is 0: as expected.

    Examples
    --------
    >>> moving_averages([10.0, 0.0])
    [2.0, 1.6]
    """
    averages = accumulate(
        values, lambda average, value: average + _WEIGHT * (value - average), initial=0.0
    )
    return list(averages)[1:]


def control_chart(values: Sequence[float]) -> Chart:
    """Detect a lasting shift in a series of standardised values.

    Without a shift, about one in 590 independent normal values begins a false alarm, and at any
    time 3 of 1,000 series are in alarm. A lasting shift by half a standard deviation is detected
    after 45 values, by one after 10, by two after 3 (means over many series). A value counts as
    at most three standard deviations, so that a single one never raises an alarm.

    Parameters
    ----------
    values : sequence of float
        The values in the order of time; without a shift their mean is 0 and their standard
        deviation 1.

    References
    ----------
    S. W. Roberts, Control chart tests based on geometric moving averages, Technometrics 1959.
    J. M. Lucas and M. S. Saccucci, Exponentially weighted moving average control schemes,
    Technometrics 1990 (560 values to a false alarm if values are not bounded).

    Examples
    --------
    >>> control_chart([0.0, 3.0, 3.0, 3.0]).since
    2
    """
    average, limit, since = 0.0, 0.0, None
    for place, average in enumerate(moving_averages(map(_bounded, values))):
        spread = 1 - (1 - _WEIGHT) ** (2 * (place + 1))
        limit = _LIMIT * math.sqrt(_WEIGHT / (2 - _WEIGHT) * spread)
        if abs(average) <= limit * (1 + _ROUNDING):
            since = None
        elif since is None:
            since = place
    return Chart(average, limit, since)


def _bounded(value: float) -> float:
    return max(-_LIMIT, min(value, _LIMIT))
