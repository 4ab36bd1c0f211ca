"""The figure of time by layer: reads, writes and metadata of a process."""

from __future__ import annotations

from typing import Any

from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    BAR,
    METADATA,
    NO_NUMBER,
    READ,
    WRITE,
    Column,
    Document,
    Drawn,
    Values,
    above_bars,
    in_seconds,
    number,
    percent,
    rows_axis,
    values_of,
)
from ioncast.insights.figures.laid_out import LEGEND, Figure, figure
from ioncast.insights.tables.times_table import IN_CALLS, SLOWEST
from ioncast_base.wording import in_digits, listed

PARTS = {"read": READ, "write": WRITE, "metadata": METADATA}
_DID = {"read": "reads", "write": "writes", "metadata": "metadata"}
_CONTAINS = "MPI-IO calls POSIX, so its time contains the time of POSIX in the same files."
_PIXELS_OF_A_LAYER, _PIXELS_BESIDE = 58, 95


def layer_figure(run: Document) -> Drawn | None:
    """Draw the time of a process in each layer; None without any time."""
    values = values_of(run, "time")
    layers = [layer for layer in values.layers if any(_parts(values, layer))]
    if not layers:
        return None
    run_seconds = number(run["job"]["run_seconds"])
    return Drawn(
        key="layers",
        title="Time by layer",
        said=_said(run, values, layers),
        figure=_figure(values, layers, run_seconds),
        caption="Mean seconds of a process in each layer",
        columns=(
            Column("Layer", True),
            *map(Column, ("Read", "Write", "Metadata", "Together")),
            Column("Share of the run time"),
            Column("Slowest process, at least"),
        ),
        rows=tuple(_row(values, layer, run_seconds) for layer in layers),
        note=_CONTAINS if {"MPIIO", "POSIX"} <= set(layers) else "",
    )


def _parts(values: Values, layer: str) -> list[float]:
    return [values.number(layer, part) for part in PARTS]


def _said(run: Document, values: Values, layers: list[str]) -> str:
    """Say which part of the time was spent where; each file counts once, at its highest layer."""
    by_layer = {
        layer_text(each["layer"]): [number(each[f"{part}_seconds"]) for part in PARTS]
        for each in run["layer_times"]
    }
    parts = [sum(column) for column in zip(*by_layer.values(), strict=True)]
    whole = sum(parts)
    if not whole:
        return _said_of_longest(values, layers)
    mean = whole / max(number(run["job"]["processes"]), 1)
    run_seconds = number(run["job"]["run_seconds"])
    of_run = f", {percent(mean, run_seconds)} of the run time" if run_seconds else ""
    said = f"A process spent {in_seconds(mean)} in I/O on average{of_run}: {_shares(parts)}."
    name, longest_parts = max(by_layer.items(), key=lambda item: sum(item[1]))
    if len([each for each in by_layer.values() if any(each)]) > 1:
        said += f" {name} took {percent(sum(longest_parts), whole)} of it."
    return said


def _said_of_longest(values: Values, layers: list[str]) -> str:
    longest = max(layers, key=lambda layer: sum(_parts(values, layer)))
    parts = _parts(values, longest)
    spent = f"{in_seconds(sum(parts))} in {layer_text(longest)} calls"
    return f"A process spent {spent}: {_shares(parts)}."


def _shares(parts: list[float]) -> str:
    """List the parts of a time, the largest first."""
    named = sorted(zip(parts, _DID.values(), strict=True), key=lambda pair: -pair[0])
    return listed([f"{name} {percent(part, sum(parts))}" for part, name in named if part])


def _figure(values: Values, layers: list[str], run_seconds: float) -> Figure:
    bars: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": _DID[part],
            "y": list(range(len(layers))),
            "x": [values.number(layer, part) for layer in layers],
            "text": [in_digits(values.number(layer, part)) for layer in layers],
            "textposition": "none",
            "width": BAR,
            "marker": {"color": colour},
            "hovertemplate": f"{_DID[part]}: %{{text}} s<extra></extra>",
        }
        for part, colour in PARTS.items()
        if any(values.number(layer, part) for layer in layers)
    ]
    slowest: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": "slowest process, at least",
        "y": list(range(len(layers))),
        "x": [_longer_than_mean(values, layer) for layer in layers],
        "marker": {
            "symbol": "line-ns",
            "size": 16,
            "line": {"color": "var(--text)", "width": 2.5},
        },
        "hovertemplate": "slowest process: at least %{x:,.3~f} s<extra></extra>",
    }
    return figure(
        [*bars, slowest] if any(slowest["x"]) else bars,
        height=_PIXELS_BESIDE + _PIXELS_OF_A_LAYER * len(layers),
        showlegend=True,
        legend=LEGEND | {"traceorder": "normal"},
        barmode="stack",
        hovermode="closest",
        annotations=above_bars([_label(values, layer, run_seconds) for layer in layers]),
        xaxis={"title": {"text": "seconds, mean of the processes"}, "rangemode": "tozero"},
        yaxis=rows_axis(len(layers)),
    )


def _label(values: Values, layer: str, run_seconds: float) -> str:
    seconds = sum(_parts(values, layer))
    share = f", {percent(seconds, run_seconds)} of the run time" if run_seconds else ""
    return f"<b>{layer_text(layer)}</b> {in_seconds(seconds)}{share}"


def _longer_than_mean(values: Values, layer: str) -> float | None:
    """The time of the slowest process; a log may tell less of it than the mean of all."""
    slowest = values.number(layer, SLOWEST)
    return slowest if slowest > sum(_parts(values, layer)) else None


def _row(values: Values, layer: str, run_seconds: float) -> tuple[str, ...]:
    parts = _parts(values, layer)
    slowest = _longer_than_mean(values, layer)
    return (
        layer_text(layer),
        *map(in_seconds, parts),
        in_seconds(values.number(layer, IN_CALLS)),
        percent(sum(parts), run_seconds) if run_seconds else NO_NUMBER,
        in_seconds(slowest) if slowest else NO_NUMBER,
    )
