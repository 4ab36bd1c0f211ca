"""Traces of curves as plain JSON for Plotly, for the service's pages and for files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from predictor.curve.composing import Point

Trace = dict[str, Any]

X_AXIS = {"title": {"text": "I/O nodes (0: direct access)"}, "type": "category"}
Y_AXIS = {
    "title": {"text": "bandwidth, MiB/s"},
    "rangemode": "tozero",
    "exponentformat": "none",
    "separatethousands": True,
}
# Filled markers for measured points, open ones for predicted points.
_SYMBOLS = {"measured": "circle", "model": "circle-open"}
_MEANINGS = {"measured": "all parts measured", "model": "the model fills in"}


class Band(Protocol):
    """An expected bandwidth in MiB/s with its interval."""

    @property
    def mean(self) -> float:
        """The expected bandwidth."""

    @property
    def p10(self) -> float:
        """The bandwidth that one run in ten stays below."""

    @property
    def p90(self) -> float:
        """The bandwidth that one run in ten exceeds."""


@dataclass(frozen=True)
class Colours:
    """The colours of a figure, as CSS writes them."""

    line: str = "#1f5f8b"
    band: str = "rgba(31, 95, 139, 0.18)"
    runs: str = "#c1440e"
    decision: str = "#d98200"


PRINTED = Colours()


def by_io_nodes(order: Iterable[int]) -> dict[str, Any]:
    """Make the axis of numbers of I/O nodes: in this order, at equal distances."""
    names = [str(n) for n in order]
    return X_AXIS | {"categoryorder": "array", "categoryarray": names}


def curve(
    points: Sequence[Point],
    *,
    best: int | None,
    decision: int | None,
    measured: Mapping[int, Sequence[float]] | None = None,
    colours: Colours = PRINTED,
) -> list[Trace]:
    """Draw a predicted curve with its interval, the decision, and measured runs (MiB/s)."""
    bands = {point.io_nodes: point.bandwidth_mib_s for point in points}
    traces = expected(bands, colours)
    # The markers that are drawn on the line have more to show.
    traces[-1] |= {"mode": "lines", "hoverinfo": "skip"}
    for basis, meaning in _MEANINGS.items():
        found = [point for point in points if point.basis == basis]
        traces += _mark(found, meaning, symbol=_SYMBOLS[basis], size=9, colour=colours.line)
    at_best, at_decided = ([p for p in points if p.io_nodes == n] for n in (best, decision))
    both = "best and decision" if best == decision else "best"
    traces += _mark(at_best, both, symbol="circle-open", size=19, colour=colours.line)
    if best != decision:
        traces += [decided(point.io_nodes, point.bandwidth_mib_s, colours) for point in at_decided]
    if measured:
        traces.append(runs(measured, "measured runs", colours))
    return traces


def expected(bandwidths_mib_s: Mapping[int, Band], colours: Colours = PRINTED) -> list[Trace]:
    """Draw the expected bandwidth by number of I/O nodes: the interval as a band, and the mean."""
    bands = [bandwidths_mib_s[n] for n in sorted(bandwidths_mib_s)]
    names = [str(n) for n in sorted(bandwidths_mib_s)]
    return [
        {
            "type": "scatter",
            "x": [*names, *reversed(names)],
            "y": [*(band.p90 for band in bands), *(band.p10 for band in reversed(bands))],
            "mode": "lines",
            "fill": "toself",
            "fillcolor": colours.band,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": "predicted, p10 to p90",
        },
        {
            "type": "scatter",
            "x": names,
            "y": [band.mean for band in bands],
            "mode": "lines+markers",
            "line": {"color": colours.line},
            "hovertemplate": "%{x} I/O nodes: %{y:,.1f} MiB/s<extra>predicted mean</extra>",
            "name": "predicted mean",
        },
    ]


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
        "hovertemplate": "%{x} I/O nodes: %{y:,.1f} MiB/s<extra></extra>",
    }


def decided(io_nodes: int, band: Band, colours: Colours = PRINTED) -> Trace:
    """Mark the decision on a curve."""
    return _marks({io_nodes: band}, "decision", "square-open", 19, colours.decision)


def _mark(
    points: Sequence[Point], name: str, *, symbol: str, size: int, colour: str
) -> list[Trace]:
    bands = {point.io_nodes: point.bandwidth_mib_s for point in points}
    return [_marks(bands, name, symbol, size, colour)] if bands else []


def _marks(bands: Mapping[int, Band], name: str, symbol: str, size: int, colour: str) -> Trace:
    return {
        "type": "scatter",
        "x": [str(n) for n in bands],
        "y": [band.mean for band in bands.values()],
        "mode": "markers",
        "marker": {
            "symbol": symbol,
            "size": size,
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        "name": name,
        "hovertemplate": f"%{{x}} I/O nodes: %{{y:.1f}} MiB/s<extra>{name}</extra>",
    }
