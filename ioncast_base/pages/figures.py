"""Figures as values: panels with bars, lines, bands, points and boxes in the units of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Literal

Symbol = Literal["circle", "ring", "cross", "square", "diamond", "triangle", "stroke"]
Anchor = Literal["start", "middle", "end"]
"""The part of a text that stands at its place."""
Write = Callable[[float], str]
"""Writes a number as a text, such as `size`."""

# The number of colours for kinds of I/O in the style sheet.
_COLOURS = 8
# Labels of an axis, and powers of ten on one.
_MOST_TICKS, _MOST_POWERS = 5, 6
# An axis of other lengths has no labels.
_SHORTEST, _LONGEST = 1e-300, 1e300
# The part of its place that a group of bars or boxes fills.
_GROUP = 0.75
# The width of a bar that has its name above it, as a part of its row.
BAR = 0.34
# The part of an axis that a bar needs to be visible.
_VISIBLE = 0.002
# Pixels of a row of this kind.
ROW = 46


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with the labels of its ticks by their place."""

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    is_log: bool = False
    has_grid: bool = True


@dataclass(frozen=True)
class Bars:
    """Bars from `starts` (or 0) to `ends`, with a text at each end if there are `labels`.

    `width` is in the units of the axis across. `hints` appear under the pointer. `kinds` are the
    classes of the bars for style sheets.
    """

    name: str
    colour: str
    at: Sequence[float]
    ends: Sequence[float | None]
    starts: Sequence[float] = ()
    width: float | Sequence[float] = _GROUP
    hints: Sequence[str] = ()
    labels: Sequence[str] = ()
    kinds: Sequence[str] = ()


@dataclass(frozen=True)
class Line:
    """A line through points."""

    name: str
    colour: str
    at: Sequence[float]
    values: Sequence[float]
    is_dashed: bool = False
    width: float = 2


@dataclass(frozen=True)
class Band:
    """An interval around a line."""

    name: str
    colour: str
    at: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


@dataclass(frozen=True)
class Points:
    """Points; `size` is their diameter in pixels."""

    name: str
    colour: str
    at: Sequence[float]
    values: Sequence[float | None]
    symbol: Symbol = "circle"
    size: float = 8
    hints: Sequence[str] = ()


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
class Boxes:
    """Boxes of distributions; those that are not filled differ without colours, too."""

    name: str
    colour: str
    at: Sequence[float]
    boxes: Sequence[Box]
    width: float = _GROUP
    is_filled: bool = True


@dataclass(frozen=True)
class Texts:
    """Texts beside points: `right` and `up` are in pixels."""

    at: Sequence[float]
    values: Sequence[float]
    texts: Sequence[str]
    anchor: Anchor = "start"
    right: int = 0
    up: int = 0

    name = ""


Series = Bars | Line | Band | Points | Boxes | Texts


@dataclass(frozen=True)
class Panel:
    """A drawing with two axes; `height` is in pixels.

    Values go upwards, and `across` from left to right. If the panel is lying, values go to the
    right and `across` goes down.
    """

    across: Axis
    values: Axis
    series: Sequence[Series]
    height: int = 300
    is_lying: bool = False


@dataclass(frozen=True)
class Figure:
    """Panels below or beside each other, with a common legend."""

    panels: Sequence[Panel]
    is_beside: bool = False
    has_legend: bool = True

    @property
    def series(self) -> list[Series]:
        """The series of all panels."""
        return [series for panel in self.panels for series in panel.series]


def highest(all_series: Iterable[Series]) -> float:
    """Find the highest value of some series; 0 without values."""
    return max((value for series in all_series for value in _tops(series)), default=0.0)


def _tops(series: Series) -> Iterator[float]:
    if isinstance(series, Boxes):
        for box in series.boxes:
            yield max(box.upper, *box.outliers) if box.outliers else box.upper
    elif isinstance(series, Bars):
        yield from (end for end in series.ends if end is not None)
    elif isinstance(series, Band):
        yield from series.highs
    else:
        yield from (value for value in series.values if value is not None)


def kind_colour(place: int) -> str:
    """The colour at a place of a list; from the ninth on, colours repeat."""
    return f"var(--kind-{place % _COLOURS})"


def categories(names: Sequence[str], title: str = "") -> Axis:
    """Make an axis of names at equal distances: the first at 0, the next at 1."""
    return Axis(title, -0.5, len(names) - 0.5, dict(enumerate(names)), has_grid=False)


def numbers(low: float, high: float, title: str, write: Write | None = None) -> Axis:
    """Make an axis between two numbers, with a few round ones as labels."""
    write = write or _plain
    return Axis(title, low, high, {tick: write(tick) for tick in round_ticks(low, high)})


def whole_ticks(axis: Axis) -> Axis:
    """Label only whole numbers, for an axis of counts."""
    return replace(axis, ticks={tick: text for tick, text in axis.ticks.items() if tick % 1 == 0})


def from_zero(
    series: Iterable[Series], title: str, write: Write | None = None, room: float = 1.05
) -> Axis:
    """Make an axis from 0 to somewhat more than the highest value."""
    return numbers(0, min(room * highest(series), _LONGEST) or 1, title, write)


def logarithmic(low: float, high: float, title: str, write: Write | None = None) -> Axis:
    """Make a logarithmic axis with powers of ten as labels."""
    write = write or _plain
    first, last = ceil(log10(low)), floor(log10(high))
    step = max(1, ceil((last - first + 1) / _MOST_POWERS))
    ticks = {10.0**power: write(10.0**power) for power in range(first, last + 1, step)}
    return Axis(title, low, high, ticks, is_log=True)


def round_ticks(low: float, high: float) -> list[float]:
    """Choose at most six round numbers between two numbers; none if they are odd.

    Examples
    --------
    >>> round_ticks(0, 1234), round_ticks(0, 3)
    ([0.0, 500.0, 1000.0], [0.0, 1.0, 2.0, 3.0])
    """
    if not _SHORTEST < high - low < _LONGEST:
        return []
    step = 10.0 ** floor(log10((high - low) / _MOST_TICKS))
    step *= next(factor for factor in (1, 2, 5, 10) if high - low <= _MOST_TICKS * factor * step)
    return [place * step for place in range(ceil(low / step), floor(high / step) + 1)]


def side_by_side(places: int, place: int, group: float = _GROUP) -> tuple[float, float]:
    """Share the room of a group: the distance of a member from its middle, and its width."""
    width = group / places
    return width * (place - (places - 1) / 2), width


def _plain(value: float) -> str:
    return f"{value:,.10g}"


def rows(
    names: Sequence[str],
    values: Axis,
    series: Sequence[Series],
    *,
    row: int = ROW,
    width: float = BAR,
) -> Panel:
    """Draw rows from top to bottom, with names above them, where a narrow screen has room.

    Parameters
    ----------
    names : sequence of str
        The names of the rows at 0, 1, 2 …
    row : int
        The height of a row in pixels.
    width : float
        The part of a row that its bars fill.
    """
    across = Axis("", -0.5, len(names) - 0.5, {}, has_grid=False)
    above = Texts(
        [place - width / 2 for place in range(len(names))],
        [values.low] * len(names),
        names,
        up=4,
    )
    return Panel(across, values, [*series, above], row * len(names), is_lying=True)


def visible_ends(starts: Sequence[float], ends: Sequence[float], length: float) -> list[float]:
    """Move ends of bars so that also the shortest one is visible on an axis of this length."""
    return [max(end, start + _VISIBLE * length) for start, end in zip(starts, ends, strict=True)]


def stacked(parts: Iterable[Sequence[float]]) -> Iterator[tuple[list[float], list[float]]]:
    """Set the bars of parts on each other: where those of each part start and end."""
    ends: list[float] = []
    for part in parts:
        starts = ends or [0.0] * len(part)
        ends = [start + value for start, value in zip(starts, part, strict=True)]
        yield starts, ends
