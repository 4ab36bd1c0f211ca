"""Small curves of bandwidth by number of I/O nodes, for a row of a table or a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ioncast_base.pages.figures import Axis, Band, Figure, Line, Panel, Points, Series
from ioncast_base.wording import bandwidth, each_in_words, in_words
from predictor.curve.drawing import BAND, LINE, RUNS

# More numbers of I/O nodes have no room below a curve.
_MOST_LABELS = 9
# Pixels.
_HEIGHT, _HEIGHT_WITH_LABELS = 28, 105


class Interval(NamedTuple):
    """A bandwidth in MiB/s, with p10 and p90 if they are known."""

    mean_mib_s: float
    p10_mib_s: float | None = None
    p90_mib_s: float | None = None


@dataclass(frozen=True)
class SmallCurve:
    """A drawing, and the same in words; no drawing if nothing is known."""

    figure: Figure | None
    said: str
    has_labels: bool


def small_curve(
    bandwidths: Mapping[int, Interval | None],
    chosen: int | None,
    choice: str,
    *,
    has_labels: bool = False,
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
        return SmallCurve(None, "not measured", has_labels)
    places = {n: place for place, n in enumerate(bandwidths)}
    at, means = [places[n] for n in known], [each.mean_mib_s for each in known.values()]
    bands = [(places[n], each.p10_mib_s or 0, each.p90_mib_s) for n, each in known.items()]
    banded = [(place, low, high) for place, low, high in bands if high]
    lows, highs = [low for _, low, _ in banded], [high for _, _, high in banded]
    series: list[Series] = [
        Band("", BAND, [place for place, _, _ in banded], lows, highs),
        Line("", LINE, at, means, width=1.5),
        Points("", LINE, at, means, size=4),
    ]
    if chosen is not None and chosen in known:
        series.append(Points("", RUNS, [places[chosen]], [known[chosen].mean_mib_s]))
    labels = {
        float(places[n]): str(n)
        for n in known
        if has_labels and (len(known) <= _MOST_LABELS or n in {chosen, min(known), max(known)})
    }
    across = Axis("", 0, max(len(bandwidths) - 1, 1), labels, has_grid=False)
    height = _HEIGHT_WITH_LABELS if has_labels else _HEIGHT
    panel = Panel(across, Axis("", 0, top_mib_s, {}), series, height)
    return SmallCurve(
        Figure([panel], has_legend=False), _in_words(known, chosen, choice), has_labels
    )


def _in_words(known: Mapping[int, Interval], chosen: int | None, choice: str) -> str:
    means = ", ".join(bandwidth(each.mean_mib_s) for each in known.values())
    said = f"With {each_in_words(list(known))}: {means}."
    return said if chosen is None else f"{said} {choice}: {in_words(chosen)}."
