"""What figures of curves are made of, as Plotly's plain JSON: for pages as for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictor.composition.composing import Point

Trace = dict[str, Any]

X_AXIS = {"title": {"text": "I/O nodes (0: direct access)"}, "type": "category"}
Y_AXIS = {"title": {"text": "bandwidth, MiB/s"}, "rangemode": "tozero"}
# A filled marker is something that was seen; an open one is not.
_SYMBOLS = {"measured": "circle", "model": "circle-open"}
_MEANINGS = {"measured": "all of it measured", "model": "the model fills in"}


@dataclass(frozen=True)
class Colours:
    """What stands for what; as CSS writes colours."""

    line: str = "#1f5f8b"
    band: str = "rgba(31, 95, 139, 0.18)"
    runs: str = "#c1440e"
    decision: str = "#d98200"


PRINTED = Colours()


def curve(
    points: Sequence[Point],
    *,
    best: int | None,
    decision: int | None,
    measured: Mapping[int, Sequence[float]] | None = None,
    colours: Colours = PRINTED,
) -> list[Trace]:
    """Draw a predicted curve with its interval and decision, and measured runs as points.

    Parameters
    ----------
    points : sequence of Point
        The curve.
    best, decision : int or None
        The numbers of I/O nodes to mark.
    measured : mapping of int to sequence of float, optional
        Bandwidth in MiB/s of the application's own runs by number of I/O nodes.
    colours : Colours
        Of what is drawn.
    """
    names = [str(point.io_nodes) for point in points]
    bands = [point.bandwidth_mib_s for point in points]
    traces = [
        interval(names, [band.p10 for band in bands], [band.p90 for band in bands], colours),
        {
            "type": "scatter",
            "x": names,
            "y": [band.mean for band in bands],
            "mode": "lines",
            "line": {"color": colours.line},
            "hoverinfo": "skip",
            "name": "predicted mean",
        },
    ]
    for basis, meaning in _MEANINGS.items():
        found = [point for point in points if point.basis == basis]
        traces += _mark(found, meaning, symbol=_SYMBOLS[basis], size=9, colour=colours.line)
    at_best, at_decided = ([p for p in points if p.io_nodes == n] for n in (best, decision))
    both = "best, and decision" if best == decision else "best"
    traces += _mark(at_best, both, symbol="circle-open", size=19, colour=colours.line)
    if best != decision:
        traces += _mark(
            at_decided, "decision", symbol="square-open", size=19, colour=colours.decision
        )
    if measured:
        traces.append(runs(measured, "measured runs", colours))
    return traces


def interval(
    names: Sequence[str], p10: Sequence[float], p90: Sequence[float], colours: Colours = PRINTED
) -> Trace:
    """Draw an interval of bandwidth as a band."""
    return {
        "type": "scatter",
        "x": [*names, *reversed(names)],
        "y": [*p90, *reversed(p10)],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": colours.band,
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": "predicted, p10 to p90",
    }


def runs(
    bandwidths_mib_s: Mapping[int, Sequence[float]], name: str, colours: Colours = PRINTED
) -> Trace:
    """Draw the bandwidth of runs by number of I/O nodes as points."""
    ordered = sorted(bandwidths_mib_s.items())
    return {
        "type": "scatter",
        "x": [str(n) for n, values in ordered for _ in values],
        "y": [value for _, values in ordered for value in values],
        "mode": "markers",
        "marker": {"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": colours.runs}},
        "name": name,
        "hovertemplate": "%{x} I/O nodes: %{y:.1f} MiB/s<extra></extra>",
    }


def _mark(
    points: Sequence[Point], name: str, *, symbol: str, size: int, colour: str
) -> list[Trace]:
    if not points:
        return []
    marker = {
        "symbol": symbol,
        "size": size,
        "color": colour,
        "line": {"width": 2, "color": colour},
    }
    return [
        {
            "type": "scatter",
            "x": [str(point.io_nodes) for point in points],
            "y": [point.bandwidth_mib_s.mean for point in points],
            "mode": "markers",
            "marker": marker,
            "name": name,
            "hovertemplate": f"%{{x}} I/O nodes: %{{y:.1f}} MiB/s<extra>{name}</extra>",
        }
    ]
