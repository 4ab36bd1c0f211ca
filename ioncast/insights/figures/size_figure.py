"""Figures of requests by size, of each layer that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil, log10
from typing import Any

from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    READ,
    WRITE,
    Column,
    Document,
    Drawn,
    Values,
    percent,
    values_of,
)
from ioncast.insights.figures.laid_out import Figure, figure
from ioncast.insights.tables.histograms_table import BINS, histogram_row

_NO_SIZES = "Darshan does not record the sizes of STDIO requests."
_COLOURS = {"reads": READ, "writes": WRITE}
# Beside a bar of this many times its length, another one is not visible.
_TOO_LONG = 50
# A logarithmic axis begins below 1, so that a single request has a bar.
_START = 0.5
# More powers of ten than these have no room on a narrow screen.
_FEW = 4
# With bars of one operation, and of both.
_PIXELS_OF_A_BIN, _PIXELS_BESIDE = {1: 24, 2: 34}, 90

Counts = Mapping[str, Sequence[int]]
"""For "reads" and "writes" the requests in each bin."""


def size_figures(run: Document) -> list[Drawn]:
    """Draw the requests of each layer by size; the sizes of STDIO are not recorded."""
    values = values_of(run, "histograms")
    counts = {layer: _counts(values, layer) for layer in values.layers}
    drawn = [_drawn(layer_text(layer), of_layer) for layer, of_layer in counts.items() if of_layer]
    layers = values_of(run, "layers")
    if not layers.number("STDIO", "reads") and not layers.number("STDIO", "writes"):
        return drawn
    if not drawn:
        return [Drawn("sizes", "Requests by size", _NO_SIZES, None, "", (), ())]
    return [*drawn[:-1], replace(drawn[-1], note=_NO_SIZES)]


def _drawn(name: str, counts: Counts) -> Drawn:
    return Drawn(
        key=f"sizes-{name.lower()}",
        title=f"{name} requests by size",
        said=" ".join(f"{_said(of, found)}." for of, found in counts.items()),
        figure=_figure(counts),
        caption=f"{name} requests by size; the larger size belongs to a row",
        columns=(Column("Size", True), *_heads(counts)),
        rows=tuple(_rows(counts)),
    )


def bin_in_words(bin_: str) -> str:
    """Write a bin of a histogram in words: "1 KiB to 10 KiB", "more than 1 GiB"."""
    low, _, high = bin_.partition("–")
    if not high:
        return bin_
    unit = "" if " " in low or low == "0" else f" {high.rpartition(' ')[2]}"
    return f"{low}{unit} to {high}"


def _counts(values: Values, layer: str) -> Counts:
    found = {
        of: [round(values.number(layer, histogram_row(of, bin_))) for bin_ in BINS]
        for of in _COLOURS
    }
    return {of: counts for of, counts in found.items() if any(counts)}


def _said(of: str, counts: Sequence[int]) -> str:
    """Name the bin of at least half of the requests, or the size that half do not exceed."""
    whole, most = sum(counts), max(counts)
    if 2 * most >= whole:
        found, size = most, bin_in_words(BINS[counts.index(most)])
    else:
        below = list(accumulate(counts))
        place = next(place for place, number in enumerate(below) if 2 * number >= whole)
        found, size = below[place], f"at most {BINS[place].rpartition('–')[2]}"
    if whole == 1:
        return f"The only {of.removesuffix('s')} moves {size}"
    if found == whole:
        return f"All {whole:,} {of} move {size} each"
    part = percent(found, whole)
    return f"{part[:1].upper()}{part[1:]} of {whole:,} {of} move {size} each"


def _figure(counts: Counts) -> Figure:
    names = [bin_in_words(bin_) for bin_ in BINS]
    used = [count for of_bins in counts.values() for count in of_bins if count]
    is_log = max(used) > _TOO_LONG * min(used)
    bars: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": of,
            "y": names,
            # The bar of a 0 has no length; its text says 0.
            "x": [count or _START for count in found] if is_log else list(found),
            "text": [f"{count:,}" for count in found],
            "textposition": "outside",
            "cliponaxis": False,
            "marker": {"color": _COLOURS[of]},
            "hovertemplate": f"%{{text}} {of} of %{{y}}<extra></extra>",
        }
        for of, found in counts.items()
    ]
    return figure(
        bars,
        height=_PIXELS_BESIDE + _PIXELS_OF_A_BIN[len(counts)] * len(BINS),
        showlegend=len(counts) > 1,
        barmode="group",
        bargap=0.25,
        hovermode="closest",
        uniformtext={"mode": "show", "minsize": 10},
        xaxis=_axis(max(used), is_log=is_log),
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )


def _axis(most: int, *, is_log: bool) -> dict[str, Any]:
    """Make the axis of numbers, with room for the text of the longest bar."""
    if not is_log:
        return {"title": {"text": "requests"}, "range": [0, 1.3 * most], "nticks": 5}
    low, high = log10(_START), log10(most)
    return {
        "title": {"text": "requests, logarithmic"},
        "type": "log",
        "range": [low, high + 0.3 * (high - low)],
        "tickvals": [10**power for power in range(0, ceil(high) + 1, 1 if high < _FEW else 2)],
        "tickformat": "~s",
    }


def _heads(counts: Counts) -> Iterator[Column]:
    for of in counts:
        yield Column(of.capitalize())
        yield Column(f"Share of {of}")


def _rows(counts: Counts) -> Iterator[tuple[str, ...]]:
    for place, bin_ in enumerate(BINS):
        cells = [
            text
            for found in counts.values()
            for text in (f"{found[place]:,}", percent(found[place], sum(found)))
        ]
        yield bin_in_words(bin_), *cells
