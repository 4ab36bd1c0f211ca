"""The report of a case study: one HTML page with our results beside those of RR-9366."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from markupsafe import Markup

from benchdb.measurements.curves import Curve
from experiments.datasets import DataSet
from experiments.evaluation import Evaluation
from experiments.provenance import Machine
from experiments.published_tables import variation
from experiments.studies.phase_bandwidths import phase_bandwidths
from experiments.studies.rr9366 import reported
from experiments.studies.side_by_side import REPORT, direct_runs, phase_rows, rerun_error_rows
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from ioncast_base.wording import in_digits, size
from predictor.validation.box_plots import EXPLANATION
from predictor.validation.report_page import (
    DUNN,
    HALVES,
    bandwidth_figure,
    curve_cells,
    halves_figure,
)
from predictor.validation.reruns import Rerun
from predictor.validation.result_tables import decision_rows, error_rows

_SECONDS = ("start", "end", "time")


def write_html(path: str | Path, title: str, data: DataSet, evaluation: Evaluation) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    path : str or Path
        The page. A failure leaves an older page as it was.
    title : str
        Title of the study.
    data : DataSet
        The measurements.
    evaluation : Evaluation
        The predictions from the benchmarks, and their errors.

    Raises
    ------
    InputError
        If the page cannot be written.
    """
    results = list(evaluation.validated.values())
    parts = [
        _provenance(data),
        heading("The errors, and the choice of I/O nodes"),
        table(error_rows(results)),
        table(decision_rows(results)),
        _LEGEND,
        DUNN,
        *_sections(data, evaluation),
        heading("Benchmarks"),
        table(benchmark_rows(evaluation.curves)),
        paragraph("Mean MiB/s by number of I/O nodes ± coefficient of variation (runs)."),
        bullets("Notes", data.provenance.notes),
    ]
    write_page(path, title=title, parts=parts)


def benchmark_rows(curves: Mapping[str, Curve]) -> list[dict[str, str]]:
    """Make a row for each pattern: the mean, variation and number of runs of each cell.

    Parameters
    ----------
    curves : mapping of str to Curve
        Curves by name of their pattern.
    """
    numbers = sorted({n for curve in curves.values() for n in curve.bandwidths_mib_s})
    return [
        {
            "pattern": name,
            **{str(n): _cell(curve.bandwidths_mib_s.get(n, ())) for n in numbers},
            "IOR": curve.config.command_line(launcher=True),
        }
        for name, curve in curves.items()
    ]


def run_rows(runs: Mapping[str, Sequence[float]]) -> list[dict[str, str]]:
    """Make a row for each program, with its runs side by side, as in Table 9.

    Parameters
    ----------
    runs : mapping of str to sequence of float
        MiB/s of each run, by name of the program.
    """
    most = max(map(len, runs.values()))
    return [
        {
            "of": name,
            **{f"run {i + 1}": f"{values[i]:.1f}" if i < len(values) else "" for i in range(most)},
        }
        for name, values in runs.items()
    ]


def phase_bandwidth_rows(reruns: Iterable[Rerun]) -> list[dict[str, str]]:
    """Make a row for each phase of an application's runs, with a column by number of I/O nodes.

    A cell is the mean bandwidth and, in brackets, the ratio to the first phase of the same run.
    The rows are empty if the runs do not tell their phases, or have only one.
    """
    rows: dict[int, dict[str, str]] = {}
    for one in phase_bandwidths(reruns):
        row = rows.setdefault(one.phase, {"phase": str(one.phase)})
        row[str(one.io_nodes)] = f"{in_digits(one.mean_mib_s)} ({one.to_first:.0%})"
    return list(rows.values())


def _provenance(data: DataSet) -> str:
    """A list of the machine, the programs and the settings of the measurements."""
    known = data.provenance
    sources = sorted({log.source for log in known.logs})
    lines = {
        "measured": f"{known.date}, {known.tasks} processes on {known.nodes} compute nodes of"
        f" {known.system}, seed {', '.join(map(str, known.seeds))}"
        + (f", scale {known.scale:g}" if known.scale else ""),
        "machine": _machine(known.machine),
        "benchmarks by": known.engine,
        "Darshan logs by": "; ".join(sources),
        "versions": ", ".join(f"{name} {version}" for name, version in known.versions.items()),
        "measure again with": known.command,
    }
    items = (Markup("<li>{}: {}</li>").format(*line) for line in lines.items())
    return Markup("<ul>\n{}\n</ul>").format(Markup("\n").join(items))


def _machine(machine: Machine) -> str:
    parts = []
    if machine.cores is not None:
        parts.append(f"{machine.cores} cores")
    if machine.memory_bytes is not None:
        parts.append(f"{size(machine.memory_bytes)} of memory")
    if machine.kernel is not None:
        parts.append(f"Linux {machine.kernel}")
    return ", ".join(parts) or "unknown"


def _sections(data: DataSet, evaluation: Evaluation) -> Iterator[str]:
    """The phases, errors, curve and single runs of each application."""
    for name, result in evaluation.validated.items():
        known = reported(name)
        yield heading(name)
        yield _heading("Phases", f"Table {known.phases_table}" if known else None)
        yield table([_phase_cells(row) for row in phase_rows(name, data.jobs[name])])
        yield _START
        if known:
            yield paragraph(f"{REPORT}: {known.processes} processes on {known.nodes} nodes.")
        yield _heading("Errors of single reruns", f"Table {known.errors_table}" if known else None)
        yield table(rerun_error_rows(result, evaluation.composed[name]))
        yield _heading(
            "Bandwidth by number of I/O nodes", f"Figure {known.figure}" if known else None
        )
        yield drawn(bandwidth_figure(result), f"Bandwidth of {name}")
        yield paragraph(EXPLANATION)
        yield table(curve_cells(result))
        if result.errors_of_halves:
            yield _heading("Random halves of the reruns", "Figure 3" if known else None)
            yield HALVES
            yield drawn(halves_figure(result), "Errors of random halves of the reruns")
        if in_phases := phase_bandwidth_rows(data.applications[name]):
            yield heading("Bandwidth of each phase of a run, MiB/s", level=3)
            yield table(in_phases)
            yield _TO_FIRST
        benchmark = result.benchmark.get(0, ())
        runs = direct_runs(name, data.commands[name], data.applications[name], benchmark)
        if runs:
            yield _heading("Single runs without I/O nodes, MiB/s", "Table 9")
            yield table(run_rows(runs))
            yield _MIB_S


def _heading(text: str, place: str | None) -> str:
    return heading(f"{text} ({REPORT}: {place})" if place else text, level=3)


def _phase_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    seconds = {f"{column}, s": f"{row[column]:.3f}" for column in _SECONDS}
    others = {name: value for name, value in row.items() if name not in ("of", *_SECONDS)}
    return {"": row["of"], **seconds, **others, "bytes": size(row["bytes"])}


def _cell(runs: Sequence[float]) -> str:
    return f"{in_digits(fmean(runs), 4)} ±{variation(runs):.0%} ({len(runs)})" if runs else ""


_START = paragraph(
    "Seconds count from the start of the job. In a log from the application's own counters, "
    "they count from the moment before its processes start."
)
_TO_FIRST = paragraph(
    "By number of I/O nodes: the mean of the runs, and the ratio to the first phase of the "
    "same run (geometric mean)."
)
_MIB_S = paragraph(f"{REPORT} writes MB/s, as HACC-IO prints it, but means MiB/s.")
_LEGEND = paragraph(
    "Error: |Bw − Ba| / Ba for each rerun Ba and the predicted mean Bw. Noise floor: the same "
    "for the application's own repetitions as predictions of each other. Regret: the share of "
    "the best measured bandwidth that the chosen number of I/O nodes loses."
)
