"""A diagnosis as a page: the verdict, its evidence, and figures 3 and 4 of Harrington."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ioncast.diagnosis.diagnosing import ComparedRun, Diagnosis
from ioncast.diagnosis.diagnosis_texts import evidence_lines, title, verdict_text
from ioncast.diagnosis.normal import SLOW_RATIO
from ioncast.diagnosis.stripes import OF_BEST, TIMES_BEST
from ioncast.warehouse.survey_texts import cell
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, paragraph, write_page
from ioncast_base.wording import bandwidth, in_digits

# The figure's line: 90 % of Harrington's runs were below this share of metadata.
_SHARE = 0.23
_ROOM = 1.1
_RATIOS = (0.5, 2.0, 5.0, 20.0, 50.0)
_FEW, _MANY = "too few OSTs", "too many OSTs"


def write_diagnosis(
    path: str | Path, diagnosis: Diagnosis, compared: Sequence[ComparedRun]
) -> None:
    """Write the page of a diagnosis, with the runs that its run is compared with."""
    parts = [paragraph(verdict_text(diagnosis)), bullets("Evidence", evidence_lines(diagnosis))]
    known = [run for run in compared if run.metadata_share is not None]
    if known:
        parts.append(drawn(_by_share(known, diagnosis), "Bandwidth by metadata share"))
    with_ratio = [run for run in compared if run.slowdown is not None]
    if with_ratio:
        parts.append(drawn(_by_time(with_ratio, diagnosis), "Slowdown ratio of each run"))
    write_page(path, title=f"Diagnosis: {title(diagnosis)}", parts=parts)


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
