"""Box plots side by side for each number of I/O nodes, readable without colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchdb.measurements.cells import outliers
from ioncast_base.pages.figures import Box, Boxes, Points, Series, Symbol, side_by_side

_RING, _POINT = 13, 5

EXPLANATION = (
    "A box is the middle half of the values, and the line in it their median. The whiskers end"
    " at the lowest and the highest value. A ring marks an outlier, a run that is far from all"
    " others of its box; the whiskers do not reach it."
)


@dataclass(frozen=True)
class Distributions:
    """Values by number of I/O nodes, and their look.

    Distributions also differ by `symbol` (None to draw no values) and `is_filled`, because prints
    may have no colours. Only bandwidths have outliers.
    """

    name: str
    values: Mapping[int, Sequence[float]]
    colour: str
    symbol: Symbol | None
    is_filled: bool
    is_bandwidth: bool = False


def box(values: Sequence[float], is_outlier: Sequence[bool]) -> Box:
    """Compute a box, with quartiles of all values, interpolated between two of them.

    Examples
    --------
    >>> box([13.0, 28.0, 30.0, 32.0, 34.0], [True, False, False, False, False])
    Box(q1=28.0, median=30.0, q3=32.0, lower=28.0, upper=34.0, outliers=(13.0,))
    """
    q1, median, q3 = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    pairs = list(zip(values, is_outlier, strict=True))
    reached = [value for value, far in pairs if not far]
    # With few values, the last one that is no outlier may lie inside the box.
    return Box(
        q1,
        median,
        q3,
        lower=min(q1, *reached),
        upper=max(q3, *reached),
        outliers=tuple(value for value, far in pairs if far),
    )


def box_plot(all_distributions: Sequence[Distributions], order: Sequence[int]) -> list[Series]:
    """Draw distributions side by side, at the places of numbers of I/O nodes in an order."""
    places = {n: place for place, n in enumerate(order)}
    shown = [each for each in all_distributions if any(each.values.values())]
    return [
        series
        for number, distributions in enumerate(shown)
        for series in _drawn(distributions, places, *side_by_side(len(shown), number))
    ]


def _drawn(
    distributions: Distributions, places: Mapping[int, int], offset: float, width: float
) -> Iterator[Series]:
    known = {n: values for n, values in sorted(distributions.values.items()) if values}
    boxes = {
        n: box(values, outliers(values) if distributions.is_bandwidth else [False] * len(values))
        for n, values in known.items()
    }
    name, colour = distributions.name, distributions.colour
    at = {n: places[n] + offset for n in known}
    yield Boxes(
        *(name, colour, list(at.values()), list(boxes.values())),
        width=0.8 * width,
        is_filled=distributions.is_filled,
    )
    if distributions.symbol is not None:
        runs = [(at[n], value) for n, values in known.items() for value in values]
        yield _points("", colour, runs, distributions.symbol, _POINT)
    rings = [(at[n], value) for n, found in boxes.items() for value in found.outliers]
    if rings:
        yield _points("outlier", "var(--text)", rings, "ring", _RING)


def _points(
    name: str, colour: str, pairs: Sequence[tuple[float, float]], symbol: Symbol, size: float
) -> Points:
    return Points(
        name, colour, [at for at, _ in pairs], [value for _, value in pairs], symbol, size
    )
