"""Traces of the curves today and then as plain JSON for Plotly, for pages and files."""

from __future__ import annotations

from collections.abc import Sequence

from predictor.curve.composing import Point
from predictor.curve.drawing import PRINTED, Colours, Trace, expected

CHANGED = Colours(line="#b04a00", band="rgba(176, 74, 0, 0.18)")


def traces(
    today: Sequence[Point],
    then: Sequence[Point],
    colours: Colours = PRINTED,
    changed: Colours = CHANGED,
    *,
    name: str = "today",
) -> list[Trace]:
    """Draw the curve of a run and that of the changed run, with their intervals.

    Parameters
    ----------
    name : str
        The name of today's curve, from `advice_words.name_of_today`.
    """
    return [*_curve(today, name, colours), *_curve(then, "then", changed)]


def _curve(points: Sequence[Point], name: str, colours: Colours) -> list[Trace]:
    bands = {point.io_nodes: point.bandwidth_mib_s for point in points}
    band, line = expected(bands, colours)
    hover = f"%{{x}} I/O nodes: %{{y:.1f}} MiB/s<extra>{name}</extra>"
    return [
        band | {"name": f"{name}, p10 to p90"},
        line | {"name": name, "hovertemplate": hover},
    ]
