"""Curves of bandwidth by number of I/O nodes as figures, for the service's pages and for files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ioncast_base.pages.figures import (
    Band,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Symbol,
    categories,
    from_zero,
)
from ioncast_base.wording import bandwidth, in_words
from predictor.curve.composing import Point

IO_NODES = "I/O nodes (0: direct access)"
BANDWIDTH = "bandwidth, MiB/s"
LINE, BAND, RUNS = "var(--line)", "var(--band)", "var(--runs)"
_DECISION = "var(--decision)"
# Filled markers for measured points, open ones for predicted points.
_MEANINGS: dict[str, tuple[str, Symbol]] = {
    "measured": ("all parts measured", "circle"),
    "model": ("the model fills in", "ring"),
}
_MARK, _LARGE_MARK = 9, 19
_HEIGHT = 280

AtIoNodes = Band | Line | Points
"""A series at numbers of I/O nodes."""


class Interval(Protocol):
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


def by_io_nodes(
    series: Sequence[AtIoNodes],
    order: Iterable[int] = (),
    beside: Sequence[Series] = (),
    height: int = _HEIGHT,
) -> Figure:
    """Draw bandwidths by number of I/O nodes, all numbers at equal distances.

    Parameters
    ----------
    series : sequence of Band, Line or Points
        Series at numbers of I/O nodes.
    order : iterable of int, optional
        The numbers on the axis, if they are more than those of the series.
    beside : sequence of Series, optional
        More series, at places of the axis.
    """
    numbers = sorted({*order, *(int(n) for one in series for n in one.at)})
    places = {n: place for place, n in enumerate(numbers)}
    drawn: list[Series] = [*(_placed(one, places) for one in series), *beside]
    across = categories(list(map(str, numbers)), IO_NODES)
    return Figure([Panel(across, from_zero(drawn, BANDWIDTH), drawn, height)])


def _placed(series: AtIoNodes, places: Mapping[int, int]) -> AtIoNodes:
    return replace(series, at=[places[int(n)] for n in series.at])


def curve_figure(
    points: Sequence[Point],
    *,
    best: int | None,
    decision: int | None,
    measured: Mapping[int, Sequence[float]] | None = None,
) -> Figure:
    """Draw a predicted curve with its interval, the decision, and measured runs (MiB/s)."""
    bands = {point.io_nodes: point.bandwidth_mib_s for point in points}
    # The markers that are drawn on the line have more to show.
    series: list[AtIoNodes] = [*expected(bands)[:2]]
    for basis, (meaning, symbol) in _MEANINGS.items():
        of_basis = {
            point.io_nodes: point.bandwidth_mib_s for point in points if point.basis == basis
        }
        series += [_marks(of_basis, meaning, symbol)] if of_basis else []
    if best in bands:
        name = "best and decision" if best == decision else "best"
        series.append(_marks({best: bands[best]}, name, "ring", _LARGE_MARK))
    if decision in bands and decision != best:
        series.append(decided(decision, bands[decision]))
    if measured:
        series.append(runs(measured))
    return by_io_nodes(series)


def expected(
    bandwidths_mib_s: Mapping[int, Interval],
    name: str = "predicted mean",
    band: str = "predicted, p10 to p90",
    colours: tuple[str, str] = (LINE, BAND),
) -> tuple[Band, Line, Points]:
    """Draw the expected bandwidth by number of I/O nodes: the interval as a band, and the mean."""
    order = sorted(bandwidths_mib_s)
    found = [bandwidths_mib_s[n] for n in order]
    line = Line(name, colours[0], order, [each.mean for each in found])
    return (
        Band(band, colours[1], order, [each.p10 for each in found], [each.p90 for each in found]),
        line,
        replace(_marks(bandwidths_mib_s, name, "circle"), name="", colour=colours[0]),
    )


def runs(bandwidths_mib_s: Mapping[int, Sequence[float]], name: str = "measured runs") -> Points:
    """Draw the bandwidth of runs by number of I/O nodes as points."""
    pairs = [(n, value) for n, values in sorted(bandwidths_mib_s.items()) for value in values]
    return Points(
        *(name, RUNS, [n for n, _ in pairs], [value for _, value in pairs], "cross"),
        hints=[f"{in_words(n)}: {bandwidth(value)}" for n, value in pairs],
    )


def decided(io_nodes: int, found: Interval) -> Points:
    """Mark the decision on a curve."""
    return replace(_marks({io_nodes: found}, "decision", "square", _LARGE_MARK), colour=_DECISION)


def _marks(bands: Mapping[int, Interval], name: str, symbol: Symbol, size: int = _MARK) -> Points:
    order = sorted(bands)
    means = [bands[n].mean for n in order]
    hints = [f"{in_words(n)}: {bandwidth(bands[n].mean)}, {name}" for n in order]
    return Points(name, LINE, order, means, symbol, size, hints)
