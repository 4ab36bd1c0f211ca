"""What the repetitions of one cell say about each other: spread, outliers, modes.

A cell is one configuration on one system with one number of I/O nodes, measured by one
engine. It has few repetitions, so the rules are for 2 to 11 of them. Bandwidths are compared
by their ratios: a run that is half as fast is as far off as one that is twice as fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

OUTLIER_RULE = (
    "modified z-score of the log bandwidth, with a median deviation of at least 1 %, above"
    " 3.5 (1 + 5/n) for n repetitions, at least 5, of one mode, and at most a quarter of them"
    " (after Iglewicz and Hoaglin 1993)"
)

_FEWEST_FOR_OUTLIERS = 5
_LARGEST_SHARE_OF_OUTLIERS = 1 / 4
# Repetitions that agree to a percent make no outlier of one that is a few percent off.
_SMALLEST_DEVIATION = 0.01
_FEWEST_FOR_MODES = 3
_FACTOR_BETWEEN_MODES = 2.0
_FACTOR_TO_A_LONE_MODE = 10.0
_GAP_BY_RANGE = 1.5


def spread(values: Sequence[float]) -> float | None:
    """Relative spread of a cell: the coefficient of variation.

    Parameters
    ----------
    values : sequence of float
        Bandwidths in any unit, positive.

    Returns
    -------
    float or None
        Sample standard deviation over mean; None for fewer than two repetitions.

    Examples
    --------
    >>> round(spread([90, 100, 110]), 3)
    0.1
    """
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value / mean - 1) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance)


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Tell which repetitions are outliers by `OUTLIER_RULE`.

    Iglewicz and Hoaglin's threshold of 3.5 is for large samples: of five to eleven normal
    ones it would flag a repetition in every eighth cell. Widened, it flags one in at most
    every twentieth. With four repetitions the median and the deviation from it rest on two
    of them, which is too few to judge the others by. More than a quarter of a cell are not
    outliers but part of what the system does, and so are the repetitions of a bimodal cell.

    Parameters
    ----------
    values : sequence of float
        Bandwidths in any unit, positive.

    Returns
    -------
    tuple of bool
        For each repetition.

    References
    ----------
    B. Iglewicz and D. C. Hoaglin, How to Detect and Handle Outliers, ASQC, 1993.

    Examples
    --------
    >>> outliers([44.7, 44.8, 84.0, 44.8, 45.1, 45.1])
    (False, False, True, False, False, False)
    """
    none = (False,) * len(values)
    if len(values) < _FEWEST_FOR_OUTLIERS or bimodal(values):
        return none
    logs = [math.log(value) for value in values]
    middle = median(logs)
    distances = [abs(log - middle) for log in logs]
    deviation = max(median(distances), _SMALLEST_DEVIATION)
    threshold = 3.5 * (1 + 5 / len(values))
    flags = tuple(0.6745 * distance / deviation > threshold for distance in distances)
    return flags if sum(flags) <= _LARGEST_SHARE_OF_OUTLIERS * len(values) else none


def modes(values: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Split the repetitions of a cell into its modes.

    Two modes are at least a factor of two apart, and the gap between them is, as a ratio, at
    least 1.5 times the range within either. A repetition by itself is a mode only where it is
    off by a factor of ten or more, which is another way through the system (a cache, a stall)
    and no noise. Two repetitions are never two modes: nothing shows the range within one.

    Of lognormal cells with a coefficient of variation of 0.16 this splits none, of those with
    0.45 one in 30 with four or five repetitions, one in 100 with seven.

    Parameters
    ----------
    values : sequence of float
        Bandwidths in any unit, positive.

    Returns
    -------
    tuple of tuple of float
        One mode or two, the slower first, each in the order of `values`; none of an empty
        cell.

    Examples
    --------
    >>> modes([488.3, 526.2, 331.5, 41971.4, 409.7])
    ((488.3, 526.2, 331.5, 409.7), (41971.4,))
    """
    if not values:
        return ()
    ordered = sorted(values)
    split = _split(ordered)
    if split is None:
        return (tuple(values),)
    return (
        tuple(value for value in values if value < ordered[split]),
        tuple(value for value in values if value >= ordered[split]),
    )


def bimodal(values: Sequence[float]) -> bool:
    """Tell whether a cell has two modes (see `modes`)."""
    return _split(sorted(values)) is not None


def _split(ordered: Sequence[float]) -> int | None:
    """The index of the first repetition of the upper mode."""
    # What no factor of two spans needs no logarithms; most cells are such.
    if len(ordered) < _FEWEST_FOR_MODES or ordered[-1] < _FACTOR_BETWEEN_MODES * ordered[0]:
        return None
    ratio, split = max((ordered[i] / ordered[i - 1], i) for i in range(1, len(ordered)))
    smaller = min(split, len(ordered) - split)
    needed = _FACTOR_BETWEEN_MODES if smaller > 1 else _FACTOR_TO_A_LONE_MODE
    within = max(ordered[split - 1] / ordered[0], ordered[-1] / ordered[split])
    return split if ratio >= max(needed, within**_GAP_BY_RANGE) else None
