"""The figure of time by layer: reads, writes and metadata of a process."""

from __future__ import annotations

from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    METADATA,
    NO_NUMBER,
    READ,
    WRITE,
    Column,
    Document,
    Drawn,
    Values,
    in_seconds,
    number,
    percent,
    values_of,
)
from ioncast.insights.tables.times_table import IN_CALLS, SLOWEST
from ioncast_base.pages.figures import BAR, Bars, Figure, Points, Series, from_zero, rows, stacked
from ioncast_base.wording import listed

PARTS = {"read": READ, "write": WRITE, "metadata": METADATA}
_DID = {"read": "reads", "write": "writes", "metadata": "metadata"}
_CONTAINS = "MPI-IO calls POSIX, so its time contains the time of POSIX in the same files."


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
    at = list(range(len(layers)))
    seconds = {part: [values.number(layer, part) for layer in layers] for part in PARTS}
    series: list[Series] = [
        Bars(
            *(_DID[part], PARTS[part], at, ends, starts, BAR),
            hints=[f"{_DID[part]}: {in_seconds(value)}" for value in seconds[part]],
        )
        for part, (starts, ends) in zip(PARTS, stacked(seconds.values()), strict=True)
        if any(seconds[part])
    ]
    slowest = [_longer_than_mean(values, layer) for layer in layers]
    if any(slowest):
        hints = [f"slowest process: at least {in_seconds(value or 0)}" for value in slowest]
        name = "slowest process, at least"
        series.append(Points(name, "var(--text)", at, slowest, "stroke", 14, hints))
    axis = from_zero(series, "seconds, mean of the processes")
    return Figure([rows([_label(values, layer, run_seconds) for layer in layers], axis, series)])


def _label(values: Values, layer: str, run_seconds: float) -> str:
    seconds = sum(_parts(values, layer))
    share = f", {percent(seconds, run_seconds)} of the run time" if run_seconds else ""
    return f"{layer_text(layer)} {in_seconds(seconds)}{share}"


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
