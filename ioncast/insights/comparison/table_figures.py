"""Figures of runs side by side: requests by size, and time per process."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from math import log10

import plotly.graph_objects as go

from ioncast.insights.comparison.comparing import ComparedTable, ComparedValue, present
from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.tables.histograms_table import BINS, histogram_row
from ioncast_base.offline_pages import laid_out

_PIXELS_OF_A_BAR, _PIXELS_BESIDE = 14, 90


def size_figures(
    histograms: ComparedTable, names: Sequence[str]
) -> Iterator[tuple[str, go.Figure]]:
    """Draw the requests of each layer and operation by size, a bar for each run in each bin."""
    rows = {present(cells)[0].key: cells for cells in histograms.rows}
    for layer in dict.fromkeys(layer for layer, _ in rows):
        for of in ("reads", "writes"):
            counts = [list(map(_number, rows[layer, histogram_row(of, bin_)])) for bin_ in BINS]
            most = max(map(max, counts))
            if most:
                # A few large requests would not be visible beside many small ones. The axis starts
                # below 1, so that a single request has a bar.
                span = [log10(0.5), log10(2 * most)]
                axis = {"title": of, "type": "log", "dtick": 1, "range": span}
                bars = _bars(names, [*zip(*counts, strict=True)], "x", BINS)
                yield f"{layer_text(layer)} {of} by size", laid_out(go.Figure(bars), yaxis=axis)


def time_figures(times: ComparedTable, names: Sequence[str]) -> Iterator[go.Figure]:
    """Draw the seconds of a process in each layer, a bar for each run, unless all are 0."""
    shown = [cells for cells in times.rows if any(map(_number, cells))]
    if not shown:
        return
    rows = [present(cells)[0] for cells in shown]
    labels = [f"{layer_text(row.layer)}: {row.characteristic}" for row in rows]
    seconds = [list(map(_number, cells)) for cells in shown]
    bars = _bars(names, [*zip(*seconds, strict=True)], "y", labels)
    yield laid_out(
        go.Figure(bars),
        height=_PIXELS_BESIDE + _PIXELS_OF_A_BAR * (len(rows) * (len(names) + 1)),
        xaxis={"title": "seconds per process"},
        yaxis={"autorange": "reversed", "automargin": True},
    )


def _bars(
    names: Sequence[str], values: Sequence[Sequence[float]], axis: str, labels: Sequence[str]
) -> list[go.Bar]:
    """Make the bars of each run, upright if the labels are on the x axis."""
    other, orientation = ("y", "v") if axis == "x" else ("x", "h")
    return [
        go.Bar(
            # Plotly reads tags in names.
            name=html.escape(name),
            orientation=orientation,
            showlegend=len(names) > 1,
            **{axis: list(labels), other: list(of_run)},
        )
        for name, of_run in zip(names, values, strict=True)
    ]


def _number(cell: ComparedValue) -> float:
    value = None if cell.row is None else cell.row.value
    return float(value) if isinstance(value, int | float) else 0.0
