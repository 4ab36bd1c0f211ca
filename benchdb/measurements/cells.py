"""Statistics of the repetitions of one cell: spread, outliers and modes.

A cell is one configuration on one system with one number of I/O nodes, measured by one engine. The
rules are made for 2 to 11 repetitions. They compare bandwidths by their ratios: a run with half the
bandwidth is as far off as a run with twice the bandwidth.
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
# If all others agree to a fraction of a percent, a repetition that is a few percent off is no
# outlier.
_SMALLEST_DEVIATION = 0.01
_FEWEST_FOR_MODES = 3
_FACTOR_BETWEEN_MODES = 2.0
_FACTOR_TO_A_LONE_MODE = 10.0
_GAP_BY_RANGE = 1.5


def spread(values: Sequence[float]) -> float | None:
    """The coefficient of variation of a cell: the sample standard deviation over the mean.

    It is None for fewer than two repetitions.
    """
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value / mean - 1) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance)


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Find the outliers by `OUTLIER_RULE`.

    The threshold of 3.5 of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993) is for
    large samples. In cells of five to eleven normal repetitions it would find an outlier in every
    eighth cell; the wider threshold finds one in at most every twentieth cell. Four repetitions are
    too few, because the median and the deviation from it would rest on two of them. If more than a
    quarter of the repetitions are far off, they are normal behaviour of the system and no outliers;
    a bimodal cell has no outliers either.

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
    """Split the repetitions of a cell into one or two modes, the slower one first.

    Two modes differ by a factor of at least two, and the logarithm of that factor is at least 1.5
    times the logarithm of the range within each mode. A single repetition is a mode only if it is
    off by a factor of at least ten: then it took another way through the system (a cache, a stall)
    and is no noise. Two repetitions are never two modes, because the range within a mode is
    unknown.

    The rule splits no lognormal cell with a coefficient of variation of 0.16. With 0.45 it splits
    one cell in 30 with four or five repetitions, and one in 100 with seven.

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
    """Whether a cell has two modes (see `modes`)."""
    return _split(sorted(values)) is not None


def _split(ordered: Sequence[float]) -> int | None:
    """The index of the first repetition of the faster mode; None for a single mode."""
    # Most cells have a range below a factor of two and end here, without further arithmetic.
    if len(ordered) < _FEWEST_FOR_MODES or ordered[-1] < _FACTOR_BETWEEN_MODES * ordered[0]:
        return None
    ratio, split = max((ordered[i] / ordered[i - 1], i) for i in range(1, len(ordered)))
    smaller = min(split, len(ordered) - split)
    needed = _FACTOR_BETWEEN_MODES if smaller > 1 else _FACTOR_TO_A_LONE_MODE
    within = max(ordered[split - 1] / ordered[0], ordered[-1] / ordered[split])
    return split if ratio >= max(needed, within**_GAP_BY_RANGE) else None
