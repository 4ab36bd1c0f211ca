"""An EWMA control chart: detects when observations move away from what was predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    averages = moving_averages(map(_bounded, values))
    found = alarms(values)
    is_on = found and found[-1].ends is None
    return Chart(
        average=averages[-1] if averages else 0.0,
        limit=_limit(len(averages) - 1) if averages else 0.0,
        since=found[-1].raised if is_on else None,
    )


@dataclass(frozen=True)
class Alarm:
    """A time in which a moving average was beyond its limit.

    Attributes
    ----------
    begins : int
        Index of the first value of the shift: the average has been on the alarm's side of 0 since
        then (Nishina's estimate).
    raised : int
        Index of the value with which the average crossed the limit.
    ends : int or None
        Index of the value with which it came back; None if it is still beyond.
    """

    begins: int
    raised: int
    ends: int | None
    is_up: bool


def alarms(values: Sequence[float]) -> list[Alarm]:
    """List the alarms of a series, the oldest first; parameters as for `control_chart`.

    References
    ----------
    K. Nishina, A comparison of control charts from the viewpoint of change-point estimation,
    Quality and Reliability Engineering International 1992.

    Examples
    --------
    >>> alarms([-0.1, 3.0, 3.0, 3.0])
    [Alarm(begins=1, raised=2, ends=None, is_up=True)]
    """
    found: list[Alarm] = []
    begins, before = 0, 0.0
    for place, average in enumerate(moving_averages(map(_bounded, values))):
        if average * before <= 0:
            begins = place
        before = average
        is_on = bool(found) and found[-1].ends is None
        if abs(average) <= _limit(place) * (1 + _ROUNDING):
            if is_on:
                found[-1] = replace(found[-1], ends=place)
        elif not is_on:
            found.append(Alarm(begins, place, None, average > 0))
    return found


def _limit(place: int) -> float:
    """The limit of the average after the value with this index."""
    spread = 1 - (1 - _WEIGHT) ** (2 * (place + 1))
    return _LIMIT * math.sqrt(_WEIGHT / (2 - _WEIGHT) * spread)


def _bounded(value: float) -> float:
    return max(-_LIMIT, min(value, _LIMIT))
