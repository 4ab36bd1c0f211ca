"""Box plots side by side for each number of I/O nodes, readable without colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchdb.measurements.cells import outliers
from predictor.curve.drawing import Trace

_RING, _POINT = 13, 5

EXPLANATION = (
    "<p>A box is the middle half of the values, and the line in it their median. The whiskers end"
    " at the lowest and the highest value. A ring marks an outlier, a run that is far from all"
    " others of its box; the whiskers do not reach it.</p>"
)


@dataclass(frozen=True)
class Box:
    """A box, the ends of its whiskers, and the outliers beyond them."""

    q1: float
    median: float
    q3: float
    lower: float
    upper: float
    outliers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """Values by number of I/O nodes, and their look.

    Series also differ by Plotly's `symbol` (empty to draw no values) and `is_filled`, because
    prints may have no colours. Only bandwidths have outliers.
    """

    name: str
    values: Mapping[int, Sequence[float]]
    colour: str
    symbol: str
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


def box_plot(all_series: Iterable[Series]) -> list[Trace]:
    """Draw series side by side; the figure needs `boxmode="group"`."""
    found = [(series, _boxes(series)) for series in all_series if any(series.values.values())]
    rings = [
        _rings(series, boxes)
        for series, boxes in found
        if any(each.outliers for each in boxes.values())
    ]
    # All rings mean the same, so the legend needs only one.
    return [*(_drawn(*each) for each in found), *rings[:1], *(r | _UNNAMED for r in rings[1:])]


_UNNAMED = {"showlegend": False}


def _boxes(series: Series) -> dict[int, Box]:
    return {
        n: box(values, outliers(values) if series.is_bandwidth else [False] * len(values))
        for n, values in sorted(series.values.items())
        if values
    }


def _drawn(series: Series, boxes: Mapping[int, Box]) -> Trace:
    """Draw the boxes of a series with all of its values."""
    shown = list(boxes.values())
    trace: Trace = {
        "type": "box",
        "name": series.name,
        "offsetgroup": series.name,
        "x": [str(n) for n in boxes],
        "q1": [each.q1 for each in shown],
        "median": [each.median for each in shown],
        "q3": [each.q3 for each in shown],
        "lowerfence": [each.lower for each in shown],
        "upperfence": [each.upper for each in shown],
        "line": {"color": series.colour, "width": 2},
        "boxpoints": False,
    }
    if not series.is_filled:
        trace["fillcolor"] = "rgba(255, 255, 255, 0.8)"
    if series.symbol:
        trace |= {
            "y": [list(series.values[n]) for n in boxes],
            "boxpoints": "all",
            "jitter": 0,
            "pointpos": 0,
            "marker": {"symbol": series.symbol, "size": _POINT, "color": series.colour},
        }
    return trace


def _rings(series: Series, boxes: Mapping[int, Box]) -> Trace:
    """Draw rings around outliers: points of a box without lines in the same place."""
    pairs = [(str(n), value) for n, each in boxes.items() for value in each.outliers]
    return {
        "type": "box",
        "name": "outlier",
        "offsetgroup": series.name,
        "x": [n for n, _ in pairs],
        "y": [value for _, value in pairs],
        "boxpoints": "all",
        "jitter": 0,
        "pointpos": 0,
        "hoveron": "points",
        "line": {"width": 0, "color": "rgba(0, 0, 0, 0)"},
        "fillcolor": "rgba(0, 0, 0, 0)",
        "marker": {"symbol": "circle-open", "size": _RING, "color": "#000000"},
    }
