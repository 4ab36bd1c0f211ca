"""Figures of requests by size, of each layer that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

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
from ioncast.insights.tables.histograms_table import BINS, histogram_row
from ioncast_base.pages.figures import (
    Axis,
    Bars,
    Figure,
    Panel,
    categories,
    logarithmic,
    numbers,
    side_by_side,
)

_NO_SIZES = "Darshan does not record the sizes of STDIO requests."
_COLOURS = {"reads": READ, "writes": WRITE}
# Beside a bar of this many times its length, another one is not visible.
_TOO_LONG = 50
# A logarithmic axis begins below 1, so that a single request has a bar.
_START = 0.5
# Pixels of a bin with one bar, of the space between bins, and of each bar.
_BIN, _BETWEEN, _BAR = 24, 7, 13

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
        figure=Figure([size_panel(counts, _COLOURS)], has_legend=len(counts) > 1),
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


def size_panel(
    counts: Mapping[str, Sequence[int]], colours: Mapping[str, str], title: str = "requests"
) -> Panel:
    """Draw the requests in each bin, with a bar for each name."""
    used = [count for of_bins in counts.values() for count in of_bins if count]
    is_log = max(used) > _TOO_LONG * min(used)
    bars = []
    for place, (name, in_bins) in enumerate(counts.items()):
        offset, width = side_by_side(len(counts), place)
        bars.append(
            Bars(
                name,
                colours[name],
                [bin_ + offset for bin_ in range(len(BINS))],
                # The bar of a 0 has no length; its text says 0.
                [count or _START for count in in_bins] if is_log else in_bins,
                width=width,
                hints=[
                    f"{count:,.0f} {name} of {bin_in_words(bin_)}"
                    for count, bin_ in zip(in_bins, BINS, strict=True)
                ],
                labels=[f"{count:,.0f}" for count in in_bins],
            )
        )
    bins = categories([bin_in_words(bin_) for bin_ in BINS])
    height = max(_BIN, _BETWEEN + _BAR * len(counts)) * len(BINS)
    return Panel(bins, _axis(max(used), title, is_log=is_log), bars, height, is_lying=True)


def _axis(most: int, title: str, *, is_log: bool) -> Axis:
    """Make the axis of numbers, with room for the text of the longest bar."""
    if is_log:
        high = _START * (most / _START) ** 1.3
        return logarithmic(_START, high, f"{title}, logarithmic", "{:,.0f}".format)
    return numbers(0, 1.3 * most, title)


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
