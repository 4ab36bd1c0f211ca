"""IOPro's figures of MPI-IO calls, their fragments and servers, as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioncast.warehouse.queries import query_of
from ioncast_base.pages.figures import (
    Bars,
    Figure,
    Panel,
    Points,
    Series,
    Symbol,
    Texts,
    categories,
    from_zero,
    kind_colour,
    logarithmic,
    numbers,
    stacked,
    whole_ticks,
)
from ioncast_base.pages.page import drawn, heading, paragraph, write_page
from ioncast_base.wording import in_digits

if TYPE_CHECKING:
    from ioncast.warehouse.engine import Ask

Row = Mapping[str, Any]
Rows = Callable[..., list[Row]]
# Bars beyond which they are too thin, series beyond which colours repeat, and labels of an axis.
_MOST_BARS, _MOST_SERIES, _MOST_LABELS = 32, 8, 8
# Seconds beyond these are mistakes of clocks.
_LEAST_S, _MOST_S = 1e-9, 1e9
# Bars with a number of three digits, on the screen of a telephone.
_MOST_NUMBERED = 10
_SYMBOLS: Sequence[Symbol] = ("circle", "square", "diamond", "triangle", "ring", "cross")
_LAYERS = {
    "MPI-IO": ("var(--kind-0)", "mpi_seconds"),
    "client (POSIX)": ("var(--kind-1)", "client_seconds"),
    "servers": ("var(--kind-2)", "server_seconds"),
}


def write_layers(path: str | Path, ask: Ask, given: Mapping[str, str], log: str) -> None:
    """Write the figures that the selected calls of one log have; on an error an older page stays.

    Parameters
    ----------
    ask : callable
        Answers queries on the tables of the log.
    given : mapping
        Values of parameters by name, as the command line has them. A query takes those it has.
    log : str
        The name of the log, for the title.
    """

    def rows(name: str, **more: str) -> list[Row]:
        query = query_of(name)
        known = {each.name for each in query.parameters} - {"view"}
        chosen = {key: value for key, value in given.items() if key in known} | more
        found: list[Row] = ask(query, query.values(chosen)).to_pylist()
        return found

    parts = [
        part
        for title, said, figure in _figures(rows)
        for part in (heading(title), paragraph(said), drawn(figure, title))
    ]
    if not parts:
        parts = [paragraph("No MPI-IO call is selected.")]
    write_page(path, title=f"Layers of {Path(log).name}", parts=parts)


def _figures(rows: Rows) -> Iterator[tuple[str, str, Figure]]:
    """Yield titles, sentences and figures; only those that have data."""
    exclusive = rows("latency-exclusive")
    processes = [row for row in exclusive if row["sum_of"] == "process"]
    if not processes:
        return
    shown, cut = _longest(processes, "process", "mpi_seconds", "client_seconds", "server_seconds")
    said = f"Seconds in each layer without the layers below it.{cut}"
    names = [f"{row['process']}" for row in shown]
    yield "Layers of each process", said, _stacks(shown, names, "process")
    longest = [row for row in rows("latency-max") if row["latency_seconds"] is not None]
    if not longest:
        return
    have_times = any(row["server_seconds"] for row in processes)
    shortest = rows("latency-min") if have_times else []
    # IOPro shows one process; the one that waits longest below MPI-IO tells most.
    busy = max(processes, key=lambda row: (row["client_seconds"], -row["process"]))["process"]
    of_busy = {"process": f"{busy}"}
    panels, cut = _extremes(longest, shortest, ["process"], "process")
    title = "Longest and shortest fragment of each process" if shortest else "Longest fragments"
    yield title, _said_numbers(have_times) + cut, Figure(panels, has_legend=False)
    most, least = ([row for row in each if row["process"] == busy] for each in (longest, shortest))
    panels, cut = _extremes(most, least, ["call_number", "fragment"], "call-fragment")
    figure = Figure(_in_powers(panels), has_legend=False)
    yield f"Fragments of process {busy}", _said_numbers(have_times) + cut, figure
    calls = [row for row in rows("latency-exclusive", **of_busy) if row["sum_of"] == "call"]
    shown, cut = _longest(calls, "call_number", *(column for _, column in _LAYERS.values()))
    names = [f"{row['call_number']}" for row in shown]
    title = f"Calls of process {busy}"
    yield title, f"Seconds in each layer by call.{cut}", _stacks(shown, names, "call")
    if any(row["server"] is not None for row in longest):
        yield from _servers(rows, busy)


def _servers(rows: Rows, busy: int) -> Iterator[tuple[str, str, Figure]]:
    """Yield the requests and the bandwidth of servers by call."""
    counted = [row for row in rows("calls", process=f"{busy}") if row["call_number"] is not None]
    title = f"Requests of process {busy} to servers"
    yield title, *_by_call(counted, "server", "requests", "requests")
    speeds = [row for row in rows("throughput", view="server") if row["mb_s"] is not None]
    if not speeds:
        return
    yield "Bandwidth of servers", *_by_call(speeds, "server", "mb_s", "MB/s")
    at = _number(max(speeds, key=lambda row: (row["bytes"], -_number(row["server"])))["server"])
    pairs = rows("throughput", server=f"{at}", view="process")
    speeds = [row for row in pairs if row["mb_s"] is not None]
    title = f"Bandwidth of processes at server {at}"
    yield title, *_by_call(speeds, "process", "mb_s", "MB/s")


def _said_numbers(have_times: bool) -> str:
    """Tell the meaning of the numbers on bars."""
    if have_times:
        return "Seconds at one server, whose number is on the bar; -1 is not known."
    return "The log does not tell the seconds at each server."


def _extremes(
    longest: Sequence[Row], shortest: Sequence[Row], columns: Sequence[str], title: str
) -> tuple[list[Panel], str]:
    """Draw the longest row for each value of columns above the shortest one."""
    most, least = _extreme(longest, max, columns), _extreme(shortest, min, columns)
    shown, cut = _longest([*most.values()], columns[0], "latency_seconds", most=_MOST_NUMBERED)
    keys = [tuple(row[column] for column in columns) for row in shown]
    labels = ["-".join(map(str, key)) for key in keys]
    panels = [_numbered("longest", shown, labels, title, has_numbers=bool(least))]
    if least:
        panels.append(_numbered("shortest", [least[key] for key in keys], labels, title))
    return panels, cut


def _extreme(
    found: Sequence[Row], choose: Callable[..., Row], columns: Sequence[str]
) -> dict[tuple[int, ...], Row]:
    """Choose a row by its seconds for each value of columns."""
    by_key: dict[tuple[int, ...], list[Row]] = {}
    for row in found:
        by_key.setdefault(tuple(row[column] for column in columns), []).append(row)
    return {
        key: choose(rows, key=lambda row: row["latency_seconds"]) for key, rows in by_key.items()
    }


def _in_powers(panels: Sequence[Panel]) -> list[Panel]:
    """Show seconds on a logarithmic axis, as IOPro does for fragments; 0 has no bar."""
    bars = [each for panel in panels for each in panel.series if isinstance(each, Bars)]
    known = [end for each in bars for end in each.ends if end and _LEAST_S < end < _MOST_S]
    if not known:
        return [*panels]
    low, high = 10.0 ** floor(log10(min(known) / 2)), 3 * max(known)
    return [
        replace(panel, values=logarithmic(low, high, f"{panel.values.title}, logarithmic"))
        for panel in panels
    ]


def _longest(
    found: Sequence[Row], order: str, *columns: str, most: int = _MOST_BARS
) -> tuple[list[Row], str]:
    """Keep the rows with most seconds in columns, in their order, and say so."""

    def seconds(row: Row) -> float:
        return sum(row[column] or 0 for column in columns)

    kept = sorted(found, key=seconds, reverse=True)[:most]
    cut = f" The {most} longest of {len(found):,}." if len(kept) < len(found) else ""
    return sorted(kept, key=lambda row: (row[order], row.get("fragment") or 0)), cut


def _stacks(found: Sequence[Row], names: Sequence[str], title: str) -> Figure:
    """Stack the seconds of layers; a layer whose seconds are not known is left out."""
    layers = {
        name: (colour, [max(row[column] or 0, 0) for row in found])
        for name, (colour, column) in _LAYERS.items()
        if any(row[column] for row in found)
    }
    series = []
    stacks = stacked(values for _, values in layers.values())
    for (name, (colour, values)), (starts, ends) in zip(layers.items(), stacks, strict=True):
        hints = [
            f"{title} {at}: {in_digits(value)} s, {name}"
            for at, value in zip(names, values, strict=True)
        ]
        series.append(Bars(name, colour, range(len(names)), ends, starts, hints=hints))
    return Figure([_panel(names, title, "seconds", series)])


def _numbered(
    name: str,
    found: Sequence[Row],
    names: Sequence[str],
    title: str,
    *,
    has_numbers: bool = True,
) -> Panel:
    """Draw fragments, with the numbers of their servers if these say more than a tie."""
    seconds = [row["latency_seconds"] for row in found]
    hints = [
        f"{title} {at}: {in_digits(row['latency_seconds'])} s"
        + (f", server {_number(row['server'])}" if has_numbers else "")
        for at, row in zip(names, found, strict=True)
    ]
    series: list[Series] = [
        Bars(name, "var(--kind-1)", range(len(found)), seconds, hints=hints),
    ]
    if has_numbers:
        labels = [f"{_number(row['server'])}" for row in found]
        series.append(Texts(range(len(found)), seconds, labels, "middle", up=4))
    return _panel(names, title, f"seconds, {name}", series)


def _panel(names: Sequence[str], title: str, unit: str, series: Sequence[Series]) -> Panel:
    across = categories(names, title)
    step = -(-len(names) // _MOST_LABELS)
    ticks = {place: text for place, text in across.ticks.items() if place % step == 0}
    across = replace(across, ticks=ticks)
    bars = [each for each in series if isinstance(each, Bars)]
    return Panel(across, from_zero(bars, unit, room=1.15), series, 200)


def _by_call(found: Sequence[Row], of: str, column: str, unit: str) -> tuple[str, Figure]:
    """Draw a number by call, with a series for each server or process with most of it."""
    sums: dict[int, float] = {}
    for row in found:
        sums[_number(row[of])] = sums.get(_number(row[of]), 0) + row[column]
    kept = sorted(sorted(sums, key=lambda each: -sums[each])[:_MOST_SERIES])
    series = []
    for place, each in enumerate(kept):
        of_each = [row for row in found if _number(row[of]) == each]
        calls = [_number(row["call_number"]) for row in of_each]
        values = [row[column] for row in of_each]
        name = f"{of} {each}"
        hints = [
            f"{name}, call {call}: {in_digits(value)} {unit}"
            for call, value in zip(calls, values, strict=True)
        ]
        symbol = _SYMBOLS[place % len(_SYMBOLS)]
        series.append(Points(name, kind_colour(place), calls, values, symbol, hints=hints))
    calls = [_number(row["call_number"]) for row in found]
    low, high = min(calls, default=0) - 0.5, max(calls, default=0) + 0.5
    across = whole_ticks(numbers(low, high, "call"))
    said = "Each call of a process has a number, from 0."
    if len(kept) < len(sums):
        said += f" Those {len(kept)} of {len(sums):,} with most in all."
    return said, Figure([Panel(across, from_zero(series, unit, room=1.15), series, 220)])


def _number(value: int | None) -> int:
    """IOPro's number: -1 is not known."""
    return -1 if value is None else value
