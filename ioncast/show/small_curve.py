"""Small curves of bandwidth by number of I/O nodes, drawn as SVG, so that they need no script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ioncast_base.wording import bandwidth, each_in_words, in_words

# More numbers of I/O nodes have no room below a curve.
_MOST_LABELS = 9


class Size(NamedTuple):
    """The size of a drawing in pixels, and the space around its curve and below it."""

    width: int
    height: int
    space: int
    below: int
    has_labels: bool = False


IN_A_ROW = Size(120, 36, space=5, below=5)
IN_A_CARD = Size(420, 150, space=16, below=28, has_labels=True)


class Interval(NamedTuple):
    """A bandwidth in MiB/s, with p10 and p90 if they are known."""

    mean_mib_s: float
    p10_mib_s: float | None = None
    p90_mib_s: float | None = None


class DrawnPoint(NamedTuple):
    """A number of I/O nodes in the drawing: its place in pixels, and whether it is the chosen."""

    io_nodes: int
    x: float
    y: float
    is_chosen: bool
    has_label: bool


@dataclass(frozen=True)
class SmallCurve:
    """A drawing: its points, the corners of its line and of its band, and the same in words."""

    size: Size
    points: tuple[DrawnPoint, ...]
    line: str
    band: str
    said: str


def small_curve(
    bandwidths: Mapping[int, Interval | None], chosen: int | None, choice: str, size: Size
) -> SmallCurve:
    """Draw bandwidths by number of I/O nodes, from 0 MiB/s upwards.

    Parameters
    ----------
    bandwidths : mapping of int to Interval or None
        By number of I/O nodes; None keeps a place free.
    chosen : int or None
        The number of I/O nodes to mark.
    choice : str
        The name of the mark in words, such as "Best".
    """
    known = {n: each for n, each in bandwidths.items() if each is not None}
    top_mib_s = max(
        (max(each.mean_mib_s, each.p90_mib_s or 0.0) for each in known.values()), default=0.0
    )
    if not top_mib_s:
        return SmallCurve(size, (), "", "", "not measured")
    step = (size.width - 2 * size.space) / max(len(bandwidths) - 1, 1)
    places = {n: round(size.space + step * place, 1) for place, n in enumerate(bandwidths)}

    def height(mib_s: float) -> float:
        return round(
            size.height - size.below - (size.height - size.below - size.space) * mib_s / top_mib_s,
            1,
        )

    points = tuple(
        DrawnPoint(
            n,
            places[n],
            height(each.mean_mib_s),
            n == chosen,
            len(known) <= _MOST_LABELS or n in {chosen, min(known), max(known)},
        )
        for n, each in known.items()
    )
    upper = [(places[n], height(each.p90_mib_s)) for n, each in known.items() if each.p90_mib_s]
    lower = [
        (places[n], height(each.p10_mib_s or 0)) for n, each in known.items() if each.p90_mib_s
    ]
    return SmallCurve(
        size,
        points,
        _corners([(point.x, point.y) for point in points]),
        _corners([*upper, *reversed(lower)]),
        _in_words(known, chosen, choice),
    )


def _corners(places: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _in_words(known: Mapping[int, Interval], chosen: int | None, choice: str) -> str:
    means = ", ".join(bandwidth(each.mean_mib_s) for each in known.values())
    said = f"With {each_in_words(list(known))}: {means}."
    return said if chosen is None else f"{said} {choice}: {in_words(chosen)}."
