"""The curves today and then as a figure, for pages and files."""

from __future__ import annotations

from collections.abc import Sequence

from ioncast_base.pages.figures import Figure
from predictor.curve.composing import Point
from predictor.curve.drawing import by_io_nodes, expected

_HEIGHT = 240
_CHANGED = ("var(--then)", "var(--then-band)")


def gain_figure(today: Sequence[Point], then: Sequence[Point], name: str = "today") -> Figure:
    """Draw the curve of a run beside that of the changed run, with their intervals.

    Parameters
    ----------
    name : str
        The name of today's curve, from `advice_words.name_of_today`.
    """
    bands_today, bands_then = (
        {point.io_nodes: point.bandwidth_mib_s for point in points} for points in (today, then)
    )
    series = (
        *expected(bands_today, name, f"{name}, p10 to p90"),
        *expected(bands_then, "then", "then, p10 to p90", _CHANGED),
    )
    return by_io_nodes(series, height=_HEIGHT)
