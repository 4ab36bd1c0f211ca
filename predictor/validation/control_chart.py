"""Whether what is observed has moved away from what was expected: an EWMA control chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

# The share of the newest value in the average.
_WEIGHT = 0.2
# Standard deviations: more is not chance.
_LIMIT = 3.0
# A value at its limit may be beyond it by this much through rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Chart:
    """Where the average of a series is, and where it may be.

    Attributes
    ----------
    average : float
        The exponentially weighted moving average, in standard deviations of a value.
    limit : float
        What it is within, up or down, as long as chance alone moves it.
    since : int or None
        The place of the value with which it left the limits for the last time; None where it
        is within them.
    """

    average: float
    limit: float
    since: int | None


def moving_averages(values: Iterable[float]) -> list[float]:
    """Average each value with all before it, the newest most: 0.2 of it, 0.8 of the average before.

    The average begins at 0, where all is as expected.

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
    """Average a series of standardised values, the newest most.

    Of independent normal values one in about 590 begins an alarm that is none, and at any time
    3 of 1000 such series are in alarm. A lasting shift by half a standard deviation is seen
    after 45 values, by one after 10, by two after 3 (means of many series). A value counts as at
    most three standard deviations, so that no single one is an alarm.

    Parameters
    ----------
    values : sequence of float
        In the order of time; of mean 0 and standard deviation 1 where all is as expected.

    References
    ----------
    S. W. Roberts, Control chart tests based on geometric moving averages, Technometrics 1959.
    J. M. Lucas and M. S. Saccucci, Exponentially weighted moving average control schemes,
    Technometrics 1990 (560 values to a false alarm, where values count as they are).

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
