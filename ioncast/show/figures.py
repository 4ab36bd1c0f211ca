"""Figures of the service's pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from benchdb.measurements.cells import outliers
from benchdb.measurements.curves import Curve
from ioncast_base.kinds import kind_of_record
from ioncast_base.pages.figures import (
    BAR,
    Axis,
    Band,
    Bars,
    Boxes,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Symbol,
    from_zero,
    kind_colour,
    logarithmic,
    numbers,
    rows,
    side_by_side,
    stacked,
    visible_ends,
    whole_ticks,
)
from ioncast_base.wording import bandwidth, counted, in_digits, in_words, size
from predictor.curve.drawing import BANDWIDTH, LINE, Interval, by_io_nodes, decided, expected, runs
from predictor.validation.box_plots import box

Phases = Sequence[Mapping[str, Any]]
"""Phases as `ioncast phases --format json` prints them."""

# More phases make a browser slow.
_MOST_PHASES = 1000
_SOURCES = {"history": "var(--kind-0)", "model": "var(--kind-1)", "default": "var(--other)"}
_HOUR = timedelta(hours=1)
# Hours between two labels of a time axis.
_STEPS = (1, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)
_MOST_TICKS = 6
_MINUTE = len("2026-11-21T04:15")
_RATIOS = {ratio: f"{ratio:g}" for ratio in (0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10)}
# With several bars or with points a row needs more pixels, and its bars fill more of it.
_WIDE_ROW, _WIDE = 76, 0.56
# Pixels of a panel of many.
_SMALL = 160


class Ratio(NamedTuple):
    """Observed over expected bandwidth of a job: its number, time, ratio and moving average."""

    number: int
    when: str
    ratio: float
    average: float


def answer_figure(
    bands: Mapping[int, Interval],
    *,
    decision: int | None,
    measured: Mapping[int, Sequence[float]],
) -> Figure:
    """Draw the curve of the answer for the next run with the runs of the application."""
    series: list[Band | Line | Points] = [*expected(bands)]
    if decision is not None and decision in bands:
        series.append(decided(decision, bands[decision]))
    if measured:
        series.append(runs(measured))
    return by_io_nodes(series)


def timelines_figure(phases_of_runs: Mapping[str, Phases]) -> Figure:
    """Draw the phases of runs below each other, with a lane and a colour for each kind of I/O.

    Parameters
    ----------
    phases_of_runs : mapping of str to sequence of mapping
        The phases of each run by its name, as `ioncast phases --format json` prints them; an only
        run needs no name. The 1,000 slowest of a run are drawn. A kind of I/O has the same colour
        in all runs.
    """
    colours: dict[str, str] = {}
    names: list[str] = []
    lanes: list[Bars] = []
    end_s = max(
        (phase["end"] for phases in phases_of_runs.values() for phase in phases), default=0.0
    )
    for run, phases in phases_of_runs.items():
        for kind, numbered in _lanes(phases).items():
            starts = [phase["start"] for _, phase in numbered]
            ends = visible_ends(starts, [phase["end"] for _, phase in numbered], end_s)
            colour = colours.setdefault(kind, kind_colour(len(colours)))
            hints = [_hint(run, number, phase) for number, phase in numbered]
            at = [len(names)] * len(starts)
            name = ": ".join(filter(None, (run, kind)))
            lanes.append(Bars(name, colour, at, ends, starts, BAR, hints))
            names.append(name)
    seconds = from_zero(lanes, "seconds since the start", room=1)
    return Figure([rows(names, seconds, lanes)], has_legend=False)


def _lanes(phases: Phases) -> dict[str, list[tuple[int, Mapping[str, Any]]]]:
    """Sort the slowest phases, with their numbers, by kind."""
    longest = sorted(range(len(phases)), key=lambda number: -phases[number]["time"])
    drawn = set(longest[:_MOST_PHASES])
    lanes: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for number, phase in enumerate(phases):
        if number in drawn:
            lanes.setdefault(str(kind_of_record(phase)), []).append((number, phase))
    return lanes


def bandwidths_figure(bandwidths: Mapping[str, Mapping[str, float | None]]) -> Figure:
    """Draw bandwidths of runs beside each other."""
    kinds = list(dict.fromkeys(kind for of_run in bandwidths.values() for kind in of_run))
    series: list[Bars] = []
    for place, (run, of_run) in enumerate(bandwidths.items()):
        offset, width = side_by_side(len(bandwidths), place, _WIDE)
        values = [of_run.get(kind) for kind in kinds]
        at = [row + offset for row in range(len(kinds))]
        hints = ["" if value is None else f"{run}: {bandwidth(value)}" for value in values]
        series.append(Bars(run, kind_colour(place), at, values, width=width, hints=hints))
    axis = from_zero(series, BANDWIDTH)
    return Figure([rows(kinds, axis, series, row=_WIDE_ROW, width=_WIDE)])


def decisions_figure(
    counts: Iterable[tuple[str, str, int]], since: datetime, until: datetime
) -> Figure:
    """Draw the number of decisions in each hour by source."""
    by_source: dict[str, dict[int, int]] = {source: {} for source in _SOURCES}
    first = _hour_of(since)
    for hour, source, number in counts:
        place = _place(hour, first)
        by_source.setdefault(source, {})[place] = number
    hours = sorted({hour for of_source in by_source.values() for hour in of_source})
    known = {source: numbers for source, numbers in by_source.items() if numbers}
    stacks = stacked([of_source.get(hour, 0) for hour in hours] for of_source in known.values())
    series = [
        Bars(
            source,
            _SOURCES.get(source, "var(--other)"),
            [hour + 0.5 for hour in hours],
            ends,
            starts,
            width=1,
            hints=[
                f"{counted(int(end - start), 'decision')} from {source},"
                f" {first + hour * _HOUR:%d %b %H:%M}"
                for hour, start, end in zip(hours, starts, ends, strict=True)
            ],
        )
        for (source, _), (starts, ends) in zip(known.items(), stacks, strict=True)
    ]
    values = whole_ticks(from_zero(series, "decisions per hour"))
    return Figure([Panel(_hours(first, until), values, series, height=200)])


def queue_figure(
    means: Sequence[tuple[str, float, float, float, float]], since: datetime, until: datetime
) -> Figure:
    """Draw the I/O nodes in use above the waiting jobs.

    Parameters
    ----------
    means : sequence of tuple
        The start of an hour (ISO 8601), and the means of it: I/O nodes that there are and that are
        in use, waiting jobs, and those of them that wait for I/O nodes.
    """
    first = _hour_of(since)
    places = [_place(hour, first) + 0.5 for hour, *_ in means]
    when = [f"{datetime.fromisoformat(hour):%d %b %H:%M}" for hour, *_ in means]
    there, in_use, waiting, short = (list(column) for column in list(zip(*means, strict=True))[1:])
    nodes: list[Series] = [
        Bars(
            *("I/O nodes in use", "var(--kind-0)", places, in_use),
            width=1,
            hints=[
                f"{used:.3g} of {all_of_them:.3g} I/O nodes in use, {moment}"
                for used, all_of_them, moment in zip(in_use, there, when, strict=True)
            ],
        ),
        Line("I/O nodes in all", "var(--text)", places, there, is_dashed=True),
    ]
    stacks = stacked([short, [a - b for a, b in zip(waiting, short, strict=True)]])
    jobs: list[Series] = [
        Bars(
            *(name, colour, places, ends, starts),
            width=1,
            hints=[
                f"{end - start:.3g} {name}, {moment}"
                for start, end, moment in zip(starts, ends, when, strict=True)
            ],
        )
        for (name, colour), (starts, ends) in zip(
            (
                ("jobs that wait for I/O nodes", "var(--kind-1)"),
                ("jobs that wait for others", "var(--other)"),
            ),
            stacks,
            strict=True,
        )
    ]
    below = _hours(first, until)
    return Figure(
        [
            Panel(across, whole_ticks(from_zero(series, title)), series, height=150)
            for across, title, series in (
                (replace(below, title=""), "I/O nodes", nodes),
                (below, "waiting jobs", jobs),
            )
        ]
    )


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _place(hour: str, first: datetime) -> int:
    """Count the hours from the first one to this one."""
    return (datetime.fromisoformat(hour) - first) // _HOUR


def _hours(first: datetime, until: datetime) -> Axis:
    """Make an axis of hours since a time."""
    last = (until - first) // _HOUR + 1
    step = next((step for step in _STEPS if last <= _MOST_TICKS * step), last)
    written = "%d %b" if step % 24 == 0 else "%d %b %H:%M"
    begin = -first.hour % min(step, 24)
    ticks = {float(hour): f"{first + hour * _HOUR:{written}}" for hour in range(begin, last, step)}
    return Axis("time, UTC", 0, last, ticks, has_grid=False)


def repetitions_figure(curves: Sequence[Curve]) -> Figure:
    """Draw every repetition of a benchmark by engine, with a line through the medians."""
    return by_io_nodes(
        [series for place, curve in enumerate(curves) for series in _repetitions(curve, place)]
    )


def measured_figure(curves: Sequence[Curve]) -> Figure:
    """Draw all curves of a system: a panel for each kind of I/O, a colour for each request size.

    Lines go through the medians, and points are repetitions.
    """
    sizes = sorted({curve.config.transfer_size for curve in curves})
    colours = {transfer: kind_colour(place) for place, transfer in enumerate(sizes)}
    by_kind: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda each: each.config.transfer_size):
        by_kind.setdefault(str(curve.config.kind), []).append(curve)
    panels = []
    for kind, of_kind in by_kind.items():
        series = [
            each
            for curve in of_kind
            for each in _measured(curve, colours[curve.config.transfer_size])
        ]
        [panel] = by_io_nodes(series, height=_SMALL).panels
        titled = replace(panel.values, title=f"{kind}: {panel.values.title}")
        panels.append(replace(panel, values=titled))
    return Figure(panels)


def _measured(curve: Curve, colour: str) -> Iterator[Line | Points]:
    cells = sorted(curve.bandwidths_mib_s.items())
    name = f"requests of {size(curve.config.transfer_size)}"
    yield Line(name, colour, [n for n, _ in cells], [median(values) for _, values in cells])
    pairs = [(n, value) for n, values in cells for value in values]
    hints = [f"{in_words(n)}: {bandwidth(value)}, {name}, {curve.engine}" for n, value in pairs]
    at, values = [n for n, _ in pairs], [value for _, value in pairs]
    yield Points("", colour, at, values, size=4, hints=hints)


def _repetitions(curve: Curve, place: int) -> Iterator[Line | Points]:
    colour, cells = kind_colour(place), sorted(curve.bandwidths_mib_s.items())
    flagged = [
        (n, value, is_outlier)
        for n, values in cells
        for value, is_outlier in zip(values, outliers(values), strict=True)
    ]
    medians = [median(values) for _, values in cells]
    yield Line(f"{curve.engine}, median", colour, [n for n, _ in cells], medians, is_dashed=True)
    looks: tuple[tuple[Symbol, str, bool], ...] = (
        ("circle", "a repetition", False),
        ("cross", "an outlier", True),
    )
    for symbol, name, outlying in looks:
        found = [(n, value) for n, value, is_outlier in flagged if is_outlier == outlying]
        if found:
            yield Points(
                f"{curve.engine}, {name}",
                colour,
                [n for n, _ in found],
                [value for _, value in found],
                symbol,
                hints=[f"{in_words(n)}: {bandwidth(value)}, {name}" for n, value in found],
            )


def errors_figure(errors: Mapping[str, Sequence[float]], what: str) -> Figure:
    """Draw distributions of errors or regrets by name: a box and all values in each row."""
    known = [(row, list(values)) for row, values in enumerate(errors.values()) if values]
    series: list[Series] = [
        Boxes(
            *("", LINE, [row for row, _ in known]),
            [box(values, [False] * len(values)) for _, values in known],
            width=0.3,
        ),
        Points(
            *("", LINE, [row for row, values in known for _ in values]),
            [value for _, values in known for value in values],
            size=4,
            hints=[f"{value:.1%}" for _, values in known for value in values],
        ),
    ]
    axis = from_zero(series, what, "{:.0%}".format)
    return Figure([rows(list(errors), axis, series)], has_legend=False)


def ratios_figure(ratios: Mapping[str, Sequence[Ratio]]) -> Figure:
    """Draw observed over expected bandwidth with a colour for each kind of I/O."""
    series: list[Series] = []
    for place, (name, points) in enumerate(ratios.items()):
        colour, at = kind_colour(place), [point.number for point in points]
        hints = [
            f"{point.ratio:.2f} × the expected bandwidth,"
            f" {point.when[:_MINUTE].replace('T', ' ')} UTC"
            for point in points
        ]
        found = [point.ratio for point in points]
        series += [
            Points("", colour, at, found, size=5, hints=hints),
            Line(name, colour, at, [point.average for point in points]),
        ]
    last = max((point.number for points in ratios.values() for point in points), default=0)
    values = [point.ratio for points in ratios.values() for point in points if point.ratio > 0]
    low, high = min([*values, 0.5]) / 1.1, max([*values, 2]) * 1.1
    axis = logarithmic(low, high, "observed / expected")
    axis = replace(
        axis,
        ticks={ratio: text for ratio, text in _RATIOS.items() if low <= ratio <= high}
        or axis.ticks,
    )
    across = replace(numbers(0, last + 1, "outcomes, the newest on the right"), has_grid=False)
    level = Line("", "var(--border-strong)", [0, last + 1], [1, 1], is_dashed=True, width=1)
    return Figure([Panel(across, axis, [level, *series])])


def _hint(run: str, number: int, phase: Mapping[str, Any]) -> str:
    """The text of a phase's bar."""
    lines = [
        f"{run}, phase {number}" if run else f"Phase {number}",
        str(kind_of_record(phase)),
        f"{phase['start']:.2f} to {phase['end']:.2f} s, {in_digits(phase['time'])} s of I/O",
        f"{size(phase['bytes'])} in {_requests(phase['requests'])}",
        f"{counted(phase['processes'], 'process')}, {counted(phase['n_files'], 'file')}",
    ]
    return "\n".join(lines)


def _requests(count: int | None) -> str:
    return "an unknown number of requests" if count is None else counted(count, "request")
