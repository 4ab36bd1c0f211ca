"""A diagnosis as a page: the verdict, its evidence, and figures 3 to 5 of Harrington."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np

from ioncast.diagnosis.diagnosing import ComparedRun, Diagnosis
from ioncast.diagnosis.diagnosis_texts import evidence_lines, title, verdict_text
from ioncast.diagnosis.normal import SLOW_RATIO, Floats
from ioncast.diagnosis.server_times import ServerTimes
from ioncast.diagnosis.stripes import OF_BEST, TIMES_BEST
from ioncast.warehouse.survey_texts import cell
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, write_page
from ioncast_base.wording import bandwidth, counted, in_digits

# The figure's line: 90 % of Harrington's runs were below this share of metadata.
_SHARE = 0.23
_ROOM = 1.1
_RATIOS = (0.5, 2.0, 5.0, 20.0, 50.0)
# Periods overlap, so a file's grey is light; the job's bars are before those of all bytes.
_GREY, _OWN_WIDTH = "rgba(128, 128, 128, 0.25)", 0.5
_FEW, _MANY = "too few OSTs", "too many OSTs"


def write_diagnosis(
    path: str | Path,
    diagnosis: Diagnosis,
    compared: Sequence[ComparedRun],
    times: ServerTimes | None = None,
) -> None:
    """Write the page of a diagnosis, with the runs that its run is compared with, and servers."""
    parts = [paragraph(verdict_text(diagnosis)), bullets("Evidence", evidence_lines(diagnosis))]
    for name, figure in compared_figures(diagnosis, compared):
        parts.append(drawn(figure, name))
    if times is not None:
        title_of_times = "Servers of the run's files"
        parts += [heading(title_of_times), drawn(_by_servers(times), title_of_times)]
    write_page(path, title=f"Diagnosis: {title(diagnosis)}", parts=parts)


def compared_figures(
    diagnosis: Diagnosis, compared: Sequence[ComparedRun]
) -> Iterator[tuple[str, figures.Figure]]:
    """Draw a run beside those that it is compared with: each figure with its name."""
    known = [run for run in compared if run.metadata_share is not None]
    if known:
        yield "Bandwidth by metadata share", _by_share(known, diagnosis)
    with_ratio = [run for run in compared if run.slowdown is not None]
    if with_ratio:
        yield "Slowdown ratio of each run", _by_time(with_ratio, diagnosis)


def _by_share(runs: Sequence[ComparedRun], diagnosis: Diagnosis) -> figures.Figure:
    """Draw figure 3: bandwidth by the share of metadata in the I/O time."""
    series: list[figures.Series] = []
    looks: list[tuple[str, figures.Symbol]] = [("other runs", "circle"), ("this run", "diamond")]
    for own, (name, symbol) in enumerate(looks):
        chosen = [run for run in runs if _is_own(run, diagnosis) == own]
        hints = [f"{_label(run)}: {bandwidth(run.bandwidth_mib_s)}" for run in chosen]
        at = [run.metadata_share or 0.0 for run in chosen]
        values = [run.bandwidth_mib_s for run in chosen]
        colour = figures.kind_colour(own)
        series.append(figures.Points(name, colour, at, values, symbol, hints=hints))
    axis = figures.from_zero(series, "MiB/s")
    line = figures.Line(
        "90% of the source's runs are left of it",
        "var(--other)",
        [_SHARE] * 2,
        [0, axis.high],
        True,
        1,
    )
    across = figures.numbers(0, 1, "metadata share of the I/O time")
    return figures.Figure([figures.Panel(across, axis, [line, *series])])


def _by_time(runs: Sequence[ComparedRun], diagnosis: Diagnosis) -> figures.Figure:
    """Draw figure 4: the slowdown ratios in order, with the band of 90 % of the others."""
    ratios = [run.slowdown or 1.0 for run in runs]
    usual, series = diagnosis.facts.usual, list[figures.Series]()
    if usual is not None and usual.basis == "history":
        lows, highs = ([usual.mib_s / each] * 2 for each in (usual.high_mib_s, usual.low_mib_s))
        ends = [0.0, max(len(runs) - 1.0, 1.0)]
        series.append(figures.Band("90% of the other jobs", "var(--band)", ends, lows, highs))
    kinds: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        kinds.setdefault(_kind(run, diagnosis), []).append(place)
    looks: dict[str, tuple[str, figures.Symbol]] = {
        "other runs": ("var(--kind-7)", "circle"),
        _FEW: ("var(--kind-0)", "triangle"),
        _MANY: ("var(--kind-3)", "square"),
        "this run": ("var(--kind-1)", "diamond"),
    }
    for name, (colour, symbol) in looks.items():
        at = kinds.get(name, [])
        hints = [f"{_label(runs[place])}: {in_digits(ratios[place])}" for place in at]
        values = [ratios[place] for place in at]
        if at:
            series.append(figures.Points(name, colour, at, values, symbol, hints=hints))
    across = figures.Axis("runs in their order", -0.5, len(runs) - 0.5, {}, has_grid=False)
    low, high = min(ratios) / _ROOM, max(ratios) * _ROOM
    axis = figures.logarithmic(low, high, "slowdown ratio")
    # Most ratios are between two powers of ten.
    ticks = {ratio: in_digits(ratio) for ratio in _RATIOS if low <= ratio <= high}
    axis = replace(axis, ticks={**axis.ticks, **ticks})
    return figures.Figure([figures.Panel(across, axis, series)])


def _by_servers(times: ServerTimes) -> figures.Figure:
    """Draw figure 5: above loads of metadata servers, below bytes at the OSTs of the files."""
    middles = ((times.edges[:-1] + times.edges[1:]) / 2).tolist()
    width = float(times.edges[1] - times.edges[0])

    def bars(name: str, colour: int, values: Floats, share: float = 1.0) -> figures.Bars:
        known = [None if isnan(value) else value for value in values.tolist()]
        look = name, figures.kind_colour(colour)
        return figures.Bars(*look, middles, known, width=share * width)

    of_all = f"all bytes at {counted(times.osts, 'OST')} of its files"
    moved = [
        bars(of_all, 0, times.moved_mib_s),
        bars("bytes of this job", 1, times.own_mib_s, _OWN_WIDTH),
    ]
    panels = [(figures.from_zero(moved, "MiB/s"), moved, 300)]
    if not np.isnan(times.mds_percent).all():
        loads = [bars("CPU load of the busiest metadata server", 3, times.mds_percent)]
        panels.insert(0, (figures.numbers(0, 100, "CPU load in %"), loads, 160))
    across = figures.numbers(times.edges[0], times.edges[-1], "seconds since the job's start")
    return figures.Figure(
        [
            figures.Panel(across, axis, [*_periods(times, axis.high), *series], height)
            for axis, series, height in panels
        ]
    )


def _periods(times: ServerTimes, high: float) -> Iterator[figures.Band]:
    """Shade the time in which each file is written, or read if none is written."""
    operations = {each.operation for each in times.periods}
    shaded = "write" if "write" in operations else "read"
    for each in times.periods:
        if each.operation == shaded:
            span = [each.start_seconds, each.end_seconds]
            yield figures.Band(f"{shaded}s of a file", _GREY, span, [0.0] * 2, [high] * 2)


def _kind(run: ComparedRun, diagnosis: Diagnosis) -> str:
    """Name the look of a run: runs with as few or as many OSTs as a run whose stripes are wrong."""
    if _is_own(run, diagnosis):
        return "this run"
    stripes = diagnosis.facts.stripes
    best = None if stripes is None else stripes.best_count
    if run.stripe_count is None or best is None or (run.slowdown or 1.0) < SLOW_RATIO:
        return "other runs"
    if run.stripe_count < OF_BEST * best:
        return _FEW
    return _MANY if run.stripe_count > TIMES_BEST * best else "other runs"


def _is_own(run: ComparedRun, diagnosis: Diagnosis) -> bool:
    return run.log == diagnosis.log


def _label(run: ComparedRun) -> str:
    when = "" if run.start_us is None else f", {cell('start_us', run.start_us)[:10]}"
    return f"job {run.job_id}{when}"
