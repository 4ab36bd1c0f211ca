"""Figures of runs side by side: requests by size, and time per process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ioncast.insights.comparison.comparing import ComparedTable, ComparedValue, present
from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.size_figure import size_panel
from ioncast.insights.tables.histograms_table import BINS, histogram_row
from ioncast_base.pages.figures import Bars, Figure, from_zero, kind_colour, rows, side_by_side
from ioncast_base.wording import in_digits

# Pixels: a bar, and the name of a row with the space around it.
_BAR, _NAME = 14, 30


def size_figures(histograms: ComparedTable, names: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Draw the requests of each layer and operation by size, a bar for each run in each bin."""
    found = {present(cells)[0].key: cells for cells in histograms.rows}
    for layer in dict.fromkeys(layer for layer, _ in found):
        for of in ("reads", "writes"):
            in_bins = [list(map(_number, found[layer, histogram_row(of, bin_)])) for bin_ in BINS]
            counts = dict(zip(names, zip(*in_bins, strict=True), strict=True))
            if any(map(any, counts.values())):
                panel = size_panel(counts, _colours(names), of)
                figure = Figure([panel], has_legend=len(names) > 1)
                yield f"{layer_text(layer)} {of} by size", figure


def time_figures(times: ComparedTable, names: Sequence[str]) -> Iterator[Figure]:
    """Draw the seconds of a process in each layer, a bar for each run, unless all are 0."""
    shown = [cells for cells in times.rows if any(map(_number, cells))]
    if not shown:
        return
    compared = [present(cells)[0] for cells in shown]
    labels = [f"{layer_text(row.layer)}: {row.characteristic}" for row in compared]
    bars, filled = [], _BAR * len(names) / (_BAR * len(names) + _NAME)
    of_runs = zip(*(map(_number, cells) for cells in shown), strict=True)
    for place, (name, seconds) in enumerate(zip(names, of_runs, strict=True)):
        offset, width = side_by_side(len(names), place, filled)
        at = [row + offset for row in range(len(labels))]
        hints = [f"{name}: {in_digits(value)} s" for value in seconds]
        bars.append(Bars(name, kind_colour(place), at, seconds, width=width, hints=hints))
    pixels = _BAR * len(names) + _NAME
    axis = from_zero(bars, "seconds per process")
    panel = rows(labels, axis, bars, row=pixels, width=filled)
    yield Figure([panel], has_legend=len(names) > 1)


def _colours(names: Sequence[str]) -> dict[str, str]:
    return {name: kind_colour(place) for place, name in enumerate(names)}


def _number(cell: ComparedValue) -> float:
    value = None if cell.row is None else cell.row.value
    return float(value) if isinstance(value, int | float) else 0.0
