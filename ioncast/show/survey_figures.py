"""Figures of a survey, from rows of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log2

from ioncast.insights.figures.drawn import METADATA, READ, WRITE, percent
from ioncast.insights.figures.size_figure import size_panel
from ioncast.warehouse.survey import Row
from ioncast.warehouse.survey_texts import cell
from ioncast_base.pages.figures import (
    BAR,
    Axis,
    Bars,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Symbol,
    categories,
    from_zero,
    logarithmic,
    numbers,
    rows,
    stacked,
)
from ioncast_base.wording import counted, in_digits, size
from summario.reading.layouts import SIZE_BINS

FILES, CAUSES, COLLECTIVE = "var(--kind-2)", "var(--kind-5)", "var(--kind-5)"
_KINDS = (FILES, READ, METADATA, "var(--other)")
_MONTHS = 12
# Months between two labels, and the most labels. Of fewer months, bars would be too wide.
_STEPS, _MOST_LABELS, _FEWEST_MONTHS = (1, 3, 6, 12, 24, 60, 120, 600, 1200, 12000, 120000), 6, 8
# Pixels of a row of a histogram, of a list and of points.
_BIN, _ROW, _POINTS = 26, 40, 34
# Room for the text of the longest bar.
_ROOM = 1.35
# The bins of the queries: from each size or number on, to those of the next bin.
_SIZES = tuple(1 << 4 * power for power in range(11))
_PROCESSES = (1, 2, *(4**power + 1 for power in range(1, 8)))
Months = Mapping[int, Row]
"""Rows by their month, as a number since the year 0."""


def dated(answer: Sequence[Row]) -> dict[int, Row]:
    """Number the months of an answer; rows without one are left out."""
    return {
        int(row["month"][:-3]) * _MONTHS + int(row["month"][-2:]) - 1: row
        for row in answer
        if row["month"]
    }


def jobs_by_month(months: Months) -> Figure:
    """Draw jobs beside the share of their time in I/O."""
    hints = [f"{row['month']}: {counted(row['jobs'], 'job')}" for row in months.values()]
    values = [row["jobs"] for row in months.values()]
    jobs = Bars("jobs", READ, list(months), values, width=0.8, hints=hints)
    share = _points("time in I/O", METADATA, "circle", months, "io_share")
    across = _month_axis(months)
    percents = from_zero([share], "processes' time in I/O", "{:.0%}".format)
    panels = [
        Panel(across, from_zero([jobs], "jobs"), [jobs], 180),
        Panel(across, percents, [share], 180),
    ]
    return Figure(panels, is_beside=True, has_legend=False)


def bytes_by_month(months: Months) -> Figure:
    """Draw read bytes below written ones."""
    parts = (("read", READ, "read_bytes"), ("written", WRITE, "written_bytes"))
    stacks = stacked([row[of] for row in months.values()] for _, _, of in parts)
    series = []
    for (name, colour, of), (starts, ends) in zip(parts, stacks, strict=True):
        hints = [f"{row['month']}: {size(row[of])} {name}" for row in months.values()]
        series.append(Bars(name, colour, list(months), ends, starts, 0.8, hints))
    return Figure([Panel(_month_axis(months), _in_bytes(series), series, 220)])


def mpiio_by_month(months: Months) -> Figure:
    """Draw the shares of MPI-IO and of collective calls, with lines between following months."""
    looks: Sequence[tuple[str, str, str, Symbol]] = (
        ("jobs with MPI-IO", READ, "mpiio_share", "circle"),
        ("of these, jobs with collective calls", COLLECTIVE, "collective_share", "diamond"),
        ("bytes with MPI-IO", WRITE, "mpiio_bytes_share", "triangle"),
    )
    series: list[Series] = []
    for name, colour, of, symbol in looks:
        points = _points(name, colour, symbol, months, of)
        known = {m: row[of] for m, row in months.items() if row[of] is not None}
        pairs = [(month, month + 1) for month in known if month + 1 in known]
        series += (Line("", colour, pair, [known[m] for m in pair], width=1) for pair in pairs)
        series.append(points)
    return Figure([Panel(_month_axis(months), _percents(), series, 220)])


def _points(name: str, colour: str, symbol: Symbol, months: Months, of: str) -> Points:
    """Draw a share by month."""
    hints = [f"{row['month']}, {name}: {cell(of, row[of])}" for row in months.values()]
    values = [row[of] for row in months.values()]
    return Points(name, colour, list(months), values, symbol, hints=hints)


def _month_axis(months: Months) -> Axis:
    first, last = min(months), max(months)
    more = max(_FEWEST_MONTHS - (last - first + 1), 0) / 2
    low, high = first - 0.5 - more, last + 0.5 + more
    step = next(each for each in _STEPS if high - low <= _MOST_LABELS * each)
    round_ones = [each for each in range(first, last + 1) if each % step == 0]
    ticks = {
        float(month): f"{month // _MONTHS}"
        + ("" if step % _MONTHS == 0 else f"-{month % _MONTHS + 1:02}")
        for month in (months if last - first < _MOST_LABELS else round_ones)
    }
    return Axis("", low, high, ticks, has_grid=False)


def _in_bytes(series: Sequence[Series]) -> Axis:
    """Make an axis of bytes with round numbers of a binary unit as labels."""
    axis = from_zero(series, "")
    unit = 1024.0 ** int(log2(max(axis.high, 1)) / 10)
    ticks = numbers(0, axis.high / unit, "").ticks
    return replace(axis, ticks={tick * unit: size(tick * unit) for tick in ticks})


def _percents() -> Axis:
    return numbers(0, 1, "", "{:.0%}".format)


def listed_bars(
    names: Sequence[str], values: Sequence[float], labels: Sequence[str], colour: str, room: float
) -> Figure:
    """Draw a bar below each name, with a text beside it; `room` is for the longest text."""
    bars = Bars("", colour, range(len(names)), values, width=BAR, labels=labels)
    axis = replace(from_zero([bars], "", room=room), ticks={})
    return Figure([rows(names, axis, [bars], row=_ROW)], has_legend=False)


def files_by_size(answer: Sequence[Row]) -> Figure:
    """Draw the number of files in each bin, also in bins without files between others."""
    counts = {row["least_bytes"]: row["files"] for row in answer}
    bins = [each for each in _SIZES if min(counts) <= each <= max(counts)]
    values = [counts.get(each, 0) for each in bins]
    labels = [in_digits(value) for value in values]
    bars = Bars("", FILES, range(len(bins)), values, labels=labels)
    axis = replace(from_zero([bars], "files", room=_ROOM), ticks={})
    across = categories([_range(_SIZES, each) for each in bins])
    return Figure([Panel(across, axis, [bars], _BIN * len(bins), is_lying=True)], has_legend=False)


def files_by_processes(answer: Sequence[Row]) -> Figure:
    """Draw median, mean and 95th percentile of the files of jobs."""
    looks: Sequence[tuple[str, str, Symbol]] = (
        ("median", READ, "circle"),
        ("mean", WRITE, "diamond"),
        ("p95", METADATA, "triangle"),
    )
    series = []
    for name, colour, symbol in looks:
        hints = [f"{name}: {in_digits(row[name])} files" for row in answer]
        values = [row[name] for row in answer]
        series.append(Points(name, colour, range(len(answer)), values, symbol, hints=hints))
    most = max(max(row["p95"], row["mean"]) for row in answer)
    axis = logarithmic(0.5, max(10.0, 1.5 * most), "files of a job, logarithmic", in_digits)
    across = categories([_range(_PROCESSES, row["least_processes"]) for row in answer], "processes")
    return Figure([Panel(across, axis, series, _POINTS * len(answer), is_lying=True)])


def _range(bins: Sequence[int], least: int) -> str:
    """Write a bin in words: of bytes to the next bin, of processes to the number before it."""
    write = size if bins is _SIZES else "{:,}".format
    if least == bins[-1]:
        return f"{write(least)} or more"
    last = bins[bins.index(least) + 1] - (bins is _PROCESSES)
    return f"{write(least)} to {write(last)}" if last > least else write(least)


def requests_by_size(answer: Sequence[Row]) -> Figure:
    """Draw the requests of one API in each bin of Darshan."""
    counts = {}
    for operation in ("read", "write"):
        found = {row["bin"]: row["requests"] for row in answer if row["operation"] == operation}
        if found:
            counts[f"{operation}s"] = [found.get(each, 0) for each in SIZE_BINS]
    panel = size_panel(counts, {"reads": READ, "writes": WRITE})
    return Figure([replace(panel, values=replace(panel.values, ticks={}))])


def reads_to_writes(by_month: Sequence[Row]) -> Figure:
    """Draw the shares of reads and writes in bytes, requests and jobs."""
    names, shares = [], []
    for name, read, written, write in (
        ("Bytes", "read_bytes", "written_bytes", size),
        ("Requests", "reads", "writes", in_digits),
        ("Jobs", "reading_jobs", "writing_jobs", in_digits),
    ):
        reads, writes = (sum(row[of] or 0 for row in by_month) for of in (read, written))
        names.append(f"{name}: {write(reads)} read, {write(writes)} write")
        shares.append([each / (reads + writes or 1) for each in (reads, writes)])
    return _whole(names, ("reads", "writes"), (READ, WRITE), zip(*shares, strict=True))


def predicted(answer: Sequence[Row]) -> Figure:
    """Draw the shares of bytes and of I/O time by match."""
    shares = [[row["bytes_share"] or 0.0, row["seconds_share"] or 0.0] for row in answer]
    return _whole(["Bytes", "I/O time"], [row["match"] for row in answer], _KINDS, shares)


def _whole(
    names: Sequence[str],
    parts: Sequence[str],
    colours: Sequence[str],
    shares: Iterable[Sequence[float]],
) -> Figure:
    """Draw rows that are divided into the same parts; `shares` are by part, then by row."""
    series = [
        Bars(part, colour, range(len(names)), ends, starts, BAR)
        for part, colour, (starts, ends) in zip(parts, colours, stacked(shares), strict=True)
    ]
    return Figure([rows(names, _percents(), series)])


def share_said(value: float | None) -> str:
    """Write a share in words."""
    return "unknown" if value is None else percent(value, 1)
