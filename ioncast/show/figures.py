"""Figures of pages as plain JSON for Plotly; colours are variables of the style sheet."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from benchdb.measurements.cells import outliers
from benchdb.measurements.curves import Curve
from ioncast.insights.figures.laid_out import HEIGHT, Figure, figure
from ioncast_base.kinds import kind_of_record
from ioncast_base.wording import counted, in_digits, size
from predictor.curve.composing import Point
from predictor.curve.drawing import (
    Y_AXIS,
    Band,
    Colours,
    Trace,
    by_io_nodes,
    curve,
    decided,
    expected,
    runs,
)
from predictor.what_if.advice_drawing import traces

Phases = Sequence[Mapping[str, Any]]
"""Phases as `ioncast phases --format json` prints them."""

SCREEN = Colours("var(--line)", "var(--band)", "var(--runs)", "var(--decision)")
_CHANGED = Colours("var(--then)", "var(--then-band)")
_SMALL_HEIGHT = 240
# More phases make a browser slow.
_MOST_PHASES = 1000
# The number of colours for kinds of I/O in the style sheet.
_KINDS = 8
# Pixels: the height of a lane of the time line, of a line of text, and of everything around lanes.
_LANE, _LINE, _AROUND = 46, 18, 80
_SOURCES = {"history": "var(--kind-0)", "model": "var(--kind-1)", "default": "var(--other)"}
_WORDS_PER_LINE = 2
_HOUR = timedelta(hours=1)
_HOUR_MS = 3_600_000
_MINUTE = len("2026-11-21T04:15")
_RATIOS = [0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10]


class Ratio(NamedTuple):
    """Observed over expected bandwidth of a job: its number, time, ratio and moving average."""

    number: int
    when: str
    ratio: float
    average: float


def curve_figure(
    points: Sequence[Point],
    *,
    best: int | None,
    decision: int | None,
    measured: Mapping[int, Sequence[float]],
) -> Figure:
    """Draw a predicted curve with the runs of the application (see `drawing.curve`)."""
    drawn = curve(points, best=best, decision=decision, measured=measured, colours=SCREEN)
    order = sorted({*(point.io_nodes for point in points), *measured})
    return figure(drawn, xaxis=by_io_nodes(order), yaxis=Y_AXIS)


def answer_figure(
    bands: Mapping[int, Band], *, decision: int | None, measured: Mapping[int, Sequence[float]]
) -> Figure:
    """Draw the curve of the answer for the next run with the runs of the application."""
    drawn = expected(bands, SCREEN)
    if decision is not None and decision in bands:
        drawn.append(decided(decision, bands[decision], SCREEN))
    if measured:
        drawn.append(runs(measured, "measured runs", SCREEN))
    return figure(drawn, xaxis=by_io_nodes(sorted({*bands, *measured})), yaxis=Y_AXIS)


def gain_figure(today: Sequence[Point], then: Sequence[Point], name: str) -> Figure:
    """Draw the curve of a run, with its name, beside that of the run that follows advice."""
    order = sorted({point.io_nodes for point in (*today, *then)})
    drawn = traces(today, then, SCREEN, _CHANGED, name=name)
    return figure(
        # The bands need no entry of the legend, which has little room on a phone.
        [each | {"showlegend": "fill" not in each} for each in drawn],
        height=_SMALL_HEIGHT,
        xaxis=by_io_nodes(order),
        yaxis=Y_AXIS,
    )


def runs_figure(measured: Mapping[int, Sequence[float]]) -> Figure:
    """Draw the runs of an application without a prediction."""
    traces = [runs(measured, "measured runs", SCREEN)]
    return figure(traces, xaxis=by_io_nodes(sorted(measured)), yaxis=Y_AXIS)


def timeline_figure(phases: Phases) -> Figure:
    """Draw phases on a time line with a lane and a colour for each kind of I/O.

    Parameters
    ----------
    phases : sequence of mapping
        Phases as `ioncast phases --format json` prints them. Only the 1,000 slowest are drawn.
    """
    return timelines_figure({"": phases})


def timelines_figure(runs: Mapping[str, Phases]) -> Figure:
    """Draw the phases of runs below each other on one time axis.

    Parameters
    ----------
    runs : mapping of str to sequence of mapping
        The phases of each run by its name, as for `timeline_figure`. A kind of I/O has the same
        colour in all runs.
    """
    traces: list[Trace] = []
    colours: dict[str, str] = {}
    for name, phases in runs.items():
        for kind, found in _lanes(phases).items():
            colour = colours.setdefault(kind, kind_colour(len(colours)))
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": ": ".join(filter(None, (name, kind))),
                    "y": ["<br>".join(filter(None, (name, _broken(kind))))] * len(found),
                    "base": [phase["start"] for _, phase in found],
                    "x": [phase["end"] - phase["start"] for _, phase in found],
                    # The line makes short phases visible.
                    "marker": {"color": colour, "line": {"color": colour, "width": 2}},
                    "hovertext": [_told(name, number, phase) for number, phase in found],
                    "hoverinfo": "text",
                    "width": 0.6,
                }
            )
    # A name takes another line of each label.
    lane = _LANE + (_LINE if any(runs) else 0)
    return figure(
        traces,
        height=len(traces) * lane + _AROUND,
        showlegend=False,
        barmode="overlay",
        hovermode="closest",
        xaxis={"title": {"text": "seconds since the start"}, "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )


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
    traces: list[Trace] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [_broken(kind) for kind in kinds],
            "x": [of_run.get(kind) for kind in kinds],
            "marker": {"color": kind_colour(place)},
            "hovertemplate": f"%{{x:,.2f}} MiB/s<extra>{name}</extra>",
        }
        for place, (name, of_run) in enumerate(bandwidths.items())
    ]
    return figure(
        traces,
        height=len(kinds) * (_LANE + _LINE) + _AROUND,
        showlegend=True,
        barmode="group",
        xaxis=Y_AXIS,
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )


def kind_colour(place: int) -> str:
    """The colour of the kind at this place; from the ninth on, colours repeat."""
    return f"var(--kind-{place % _KINDS})"


def decisions_figure(
    counts: Iterable[tuple[str, str, int]], since: datetime, until: datetime
) -> Figure:
    """Draw the number of decisions in each hour by source."""
    by_source: dict[str, list[tuple[str, int]]] = {source: [] for source in _SOURCES}
    for hour, source, number in counts:
        by_source.setdefault(source, []).append((hour, number))
    traces: list[Trace] = [
        {
            "type": "bar",
            "name": source,
            # Plotly has no time zones; the title of the axis says UTC.
            "x": [_without_zone(datetime.fromisoformat(hour) + _HOUR / 2) for hour, _ in found],
            "y": [number for _, number in found],
            "width": _HOUR_MS,
            "marker": {"color": _SOURCES.get(source, "var(--other)")},
            "hovertemplate": f"%{{y}} in the hour around %{{x|%d %b %H:%M}}<extra>{source}</extra>",
        }
        for source, found in by_source.items()
        if found
    ]
    return figure(
        traces,
        height=260,
        barmode="stack",
        showlegend=True,
        xaxis={
            "type": "date",
            "range": [_without_zone(since), _without_zone(until + _HOUR)],
            "title": {"text": "time, UTC"},
            "showgrid": False,
        },
        yaxis={"title": {"text": "decisions per hour"}, "rangemode": "tozero"},
    )


def repetitions_figure(curves: Sequence[Curve]) -> Figure:
    """Draw every repetition of a benchmark by engine, with a line through the medians."""
    traces: list[Trace] = []
    order = sorted({n for curve in curves for n in curve.bandwidths_mib_s})
    for place, measured in enumerate(curves):
        colour = kind_colour(place)
        cells = sorted(measured.bandwidths_mib_s.items())
        flagged = [
            (str(n), value, flag)
            for n, values in cells
            for value, flag in zip(values, outliers(values), strict=True)
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{measured.engine}, median",
                "x": [str(n) for n, _ in cells],
                "y": [median(values) for _, values in cells],
                "line": {"color": colour, "width": 1.5, "dash": "dot"},
                "hoverinfo": "skip",
            }
        )
        for is_outlier, what, symbol, line in (
            (False, "a repetition", "circle", 1),
            (True, "an outlier", "x-thin", 3),
        ):
            found = [point for point in flagged if point[2] == is_outlier]
            if not found:
                continue
            marker = {
                "symbol": symbol,
                "size": 9,
                "color": colour,
                "opacity": 0.8,
                "line": {"width": line, "color": "var(--surface)" if line == 1 else colour},
            }
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{measured.engine}, {what}",
                    "x": [name for name, _, _ in found],
                    "y": [value for _, value, _ in found],
                    "marker": marker,
                    "hovertemplate": f"%{{x}} I/O nodes: %{{y:,.2f}} MiB/s<extra>{what}</extra>",
                }
            )
    return figure(traces, showlegend=True, xaxis=by_io_nodes(order), yaxis=Y_AXIS)


def errors_figure(errors: Mapping[str, Sequence[float]], name: str) -> Figure:
    """Draw distributions of errors, for example a box for each number of I/O nodes."""
    values = {"title": {"text": "error"}, "tickformat": ".0%", "rangemode": "tozero"}
    return figure(
        [_box({"y": list(found)}, label) for label, found in errors.items()],
        showlegend=False,
        xaxis={"title": {"text": name}, "type": "category"},
        yaxis=values,
    )


def named_errors_figure(errors: Mapping[str, Sequence[float]], what: str) -> Figure:
    """Draw distributions of errors or regrets by name; names need more room than numbers."""
    return figure(
        [_box({"x": list(found)}, _broken(html.escape(label))) for label, found in errors.items()],
        height=max(len(errors) * _LANE + _AROUND, HEIGHT),
        showlegend=False,
        xaxis={"title": {"text": what}, "tickformat": ".0%", "rangemode": "tozero"},
        yaxis={"type": "category", "autorange": "reversed"},
    )


def _box(values: Trace, name: str) -> Trace:
    [axis] = values
    return values | {
        "type": "box",
        "name": name,
        "boxpoints": "all",
        "jitter": 0.4,
        "pointpos": 0,
        "marker": {"color": "var(--line)", "size": 4, "opacity": 0.7},
        "fillcolor": "var(--band)",
        "line": {"color": "var(--line)", "width": 1.5},
        "hoveron": "points",
        "hovertemplate": f"%{{{axis}:.1%}}<extra></extra>",
    }


def ratios_figure(series: Mapping[str, Sequence[Ratio]]) -> Figure:
    """Draw observed over expected bandwidth with a colour for each kind of I/O."""
    traces: list[Trace] = []
    for place, (name, points) in enumerate(series.items()):
        common = {
            "type": "scatter",
            "x": [point.number for point in points],
            "name": html.escape(name).replace(", ", "<br>"),
            "legendgroup": str(place),
        }
        colour = kind_colour(place)
        traces += [
            common
            | {
                "mode": "markers",
                "y": [point.ratio for point in points],
                "text": [point.when[:_MINUTE].replace("T", " ") for point in points],
                "marker": {"color": colour, "size": 6, "opacity": 0.55},
                "hovertemplate": "%{y:.2f} × the expected bandwidth<br>%{text} UTC<extra></extra>",
                "showlegend": False,
            },
            common
            | {
                "mode": "lines",
                "y": [point.average for point in points],
                "line": {"color": colour, "width": 2},
                "hoverinfo": "skip",
            },
        ]
    expected = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    return figure(
        traces,
        showlegend=True,
        shapes=[expected | {"line": {"color": "var(--border-strong)", "width": 1, "dash": "dash"}}],
        xaxis={
            "title": {"text": "outcomes, the newest on the right"},
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={"type": "log", "title": {"text": "observed / expected"}, "tickvals": _RATIOS},
    )


def _told(run: str, number: int, phase: Mapping[str, Any]) -> str:
    """The text of a phase's bar. It has no text from the log, which might be HTML."""
    title = f"{run}, phase {number}" if run else f"Phase {number}"
    lines = [
        f"<b>{title}</b>: {kind_of_record(phase)}",
        f"{phase['start']:.2f} to {phase['end']:.2f} s, {in_digits(phase['time'])} s of I/O",
        f"{size(phase['bytes'])} in {_requests(phase['requests'])}",
        f"{counted(phase['processes'], 'process')}, {counted(phase['n_files'], 'file')}",
    ]
    return "<br>".join(lines)


def _requests(count: int | None) -> str:
    return "an unknown number of requests" if count is None else counted(count, "request")


def _broken(words: str) -> str:
    """Break a label into lines of two words, for narrow screens."""
    parts = words.split(" ")
    lines = [
        " ".join(parts[i : i + _WORDS_PER_LINE]) for i in range(0, len(parts), _WORDS_PER_LINE)
    ]
    return "<br>".join(lines)


def _without_zone(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="minutes")
