"""A case study as one HTML page: what was measured, beside what RR-9366 reports."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import plotly.graph_objects as go

from benchdb.curves import Curve
from benchdb.pages import TABLE_STYLE, bullets, drawn, table, write_page
from experiments.datasets import DataSet, Machine
from experiments.evaluation import Composed, Evaluation
from experiments.studies.rr9366 import HACC_IO, TABLE_9_MB_S, ReportedApplication, reported
from experiments.tables import variation
from predictor.drawing import PRINTED, X_AXIS, Y_AXIS, interval
from predictor.reruns import Rerun
from predictor.validation import scores
from predictor.validation_tables import Validated, curve_rows, decision_rows, error_rows
from summario.phases import Phase
from summario.tables import size, to_record

_REPORT, _HERE = "RR-9366", "here"
_BYTES_IN_MB, _BYTES_IN_MIB = 1e6, 1 << 20
_HEIGHT_PIXELS = 400
_BENCHMARKS = "#d98200"
# Columns of Tables 2, 5 and 7.
_SECONDS = ("start", "end", "time")
_FACTS = ("type", "bytes", "api", "requests", "spatiality", "files", "n_files", "mode_processes")


def write_html(path: str | Path, title: str, data: DataSet, evaluation: Evaluation) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    path : str or Path
        The page; about 5 MB, most of it Plotly. It is there as a whole or as it was before.
    title : str
        Of the study.
    data : DataSet
        What was measured.
    evaluation : Evaluation
        What the benchmarks say of the applications.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    results = list(evaluation.validated.values())
    sections = [
        _provenance(data),
        "<h2>The errors, and the choice of I/O nodes</h2>",
        table(error_rows(results)),
        table(decision_rows(results)),
        _LEGEND,
        *_sections(data, evaluation),
        "<h2>Benchmarks</h2>",
        table([_curve_row(name, curve) for name, curve in evaluation.curves.items()]),
        "<p>Mean MiB/s by number of I/O nodes ± coefficient of variation (runs).</p>",
        bullets("Notes", data.provenance.notes),
    ]
    write_page(path, title=title, body="\n".join(sections), style=TABLE_STYLE + _STYLE)


def phase_rows(application: str, phases: Sequence[Phase]) -> list[dict[str, Any]]:
    """The phases of an application beside those that RR-9366 found.

    Parameters
    ----------
    application : str
        Its name in the data set.
    phases : sequence of Phase
        Of its run.
    """
    known = reported(application)
    rows = [_phase_row(_report_name(known), vars(known.phase))] if known else []
    names = [_HERE] if len(phases) == 1 else [f"{_HERE}, {i}" for i in range(1, len(phases) + 1)]
    records = (to_record(phase) for phase in phases)
    return rows + [_phase_row(name, record) for name, record in zip(names, records, strict=True)]


def rerun_error_rows(result: Validated, composed: Composed) -> list[dict[str, str]]:
    """|Bw - Ba| / Ba of each rerun Ba: what RR-9366 reports, and what was found here.

    Parameters
    ----------
    result : Validated
        The prediction.
    composed : Composed
        The benchmarks' means, as the report takes them.
    """
    known = reported(result.application)
    rows = [
        {
            "of": f"{_REPORT}, {one.benchmark}",
            "runs": "",
            **_statistics(one.minimum, one.mean, one.median, one.maximum),
        }
        for one in (known.errors if known else ())
    ]
    for name, found in (
        ("mean of benchmarks", composed.comparison),
        ("prediction", result.prediction),
        ("noise floor", result.floor),
    ):
        if runs := scores(found).runs:
            statistics = _statistics(runs.minimum, runs.mean, runs.median, runs.maximum)
            rows.append({"of": f"{_HERE}, {name}", "runs": str(runs.count), **statistics})
    return rows


def direct_rows(reruns: Sequence[Rerun], benchmark: Sequence[float]) -> list[dict[str, str]]:
    """Each run of HACC-IO without I/O nodes in MB/s, as Table 9 has them.

    Parameters
    ----------
    reruns : sequence of Rerun
        Of HACC-IO.
    benchmark : sequence of float
        MiB/s of the benchmarks in its place, one value for each repetition.
    """
    ours = [run.bandwidth_mib_s for run in reruns if run.io_nodes == 0]
    factor = _BYTES_IN_MIB / _BYTES_IN_MB
    runs = {
        **{f"{_REPORT}, {name}": values for name, values in TABLE_9_MB_S.items()},
        f"{_HERE}, {HACC_IO.name}": [value * factor for value in ours],
        f"{_HERE}, benchmarks": [value * factor for value in benchmark],
    }
    most = max(map(len, runs.values()))
    return [
        {
            "of": name,
            **{f"run {i + 1}": f"{values[i]:.1f}" if i < len(values) else "" for i in range(most)},
        }
        for name, values in runs.items()
    ]


def bandwidth_figure(result: Validated) -> go.Figure:
    """Draw an application's reruns and the benchmarks in its place, and what these predict."""
    figure = go.Figure()
    order = [str(n) for n in sorted({*result.expected, *result.reruns})]
    points = {str(n): result.expected[n] for n in sorted(result.expected)}
    figure.add_trace(
        interval(
            list(points),
            [point.p10 for point in points.values()],
            [point.p90 for point in points.values()],
        )
    )
    figure.add_scatter(
        x=list(points),
        y=[point.mean for point in points.values()],
        mode="lines",
        line={"color": PRINTED.line},
        name="predicted mean",
        hovertemplate="%{x} I/O nodes: %{y:.1f} MiB/s<extra>predicted mean</extra>",
    )
    for runs, name, colour in (
        (result.benchmark, "benchmarks", _BENCHMARKS),
        (result.reruns, "reruns", PRINTED.runs),
    ):
        figure.add_box(
            x=[str(n) for n, values in runs.items() for _ in values],
            y=[value for values in runs.values() for value in values],
            name=name,
            marker={"color": colour, "size": 5},
            boxpoints="all",
            jitter=0.3,
            pointpos=0,
        )
    return figure.update_layout(
        height=_HEIGHT_PIXELS,
        template="plotly_white",
        margin={"t": 10, "r": 10, "l": 60, "b": 60},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        boxmode="group",
        xaxis=X_AXIS | {"categoryorder": "array", "categoryarray": order},
        yaxis=Y_AXIS,
    )


def _provenance(data: DataSet) -> str:
    """Who measured what, how and on what, as a list."""
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
        "again with": known.command,
    }
    items = (f"<li>{name}: {html.escape(text)}</li>" for name, text in lines.items())
    return "<ul>\n" + "\n".join(items) + "\n</ul>"


def _machine(machine: Machine) -> str:
    parts = []
    if machine.cores is not None:
        parts.append(f"{machine.cores} cores")
    if machine.memory_bytes is not None:
        parts.append(f"{size(machine.memory_bytes)} of memory")
    if machine.kernel is not None:
        parts.append(f"Linux {machine.kernel}")
    return ", ".join(parts) or "not known"


def _sections(data: DataSet, evaluation: Evaluation) -> Iterator[str]:
    """What there is of each application; the first figure brings Plotly."""
    for number, (name, result) in enumerate(evaluation.validated.items()):
        known = reported(name)
        yield f"<h2>{html.escape(name)}</h2>"
        yield _heading("Phases", f"Table {known.phases_table}" if known else None)
        yield table(phase_rows(name, data.jobs[name]))
        if known:
            yield f"<p>{_REPORT}: {known.processes} processes on {known.nodes} nodes.</p>"
        yield _heading("Errors of single reruns", f"Table {known.errors_table}" if known else None)
        yield table(rerun_error_rows(result, evaluation.composed[name]))
        yield _heading(
            "Bandwidth by number of I/O nodes", f"Figure {known.figure}" if known else None
        )
        yield drawn(bandwidth_figure(result), plotly=number == 0)
        yield table([_curve_point(row) for row in curve_rows([result])])
        if known is HACC_IO:
            yield _heading("Single runs without I/O nodes, MB/s", "Table 9")
            yield table(direct_rows(data.applications[name], result.benchmark.get(0, ())))


def _heading(text: str, place: str | None) -> str:
    return f"<h3>{text}{f' ({_REPORT}: {place})' if place else ''}</h3>"


def _report_name(known: ReportedApplication) -> str:
    return _REPORT if known.n_phases == 1 else f"{_REPORT}, first of {known.n_phases}"


def _phase_row(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    seconds = {f"{column}, s": f"{record[column]:.3f}" for column in _SECONDS}
    facts = {column: record[column] for column in _FACTS}
    return {"": name, **seconds, **facts, "bytes": size(record["bytes"])}


def _statistics(minimum: float, mean: float, median: float, maximum: float) -> dict[str, str]:
    values = {"minimum": minimum, "mean": mean, "median": median, "maximum": maximum}
    return {name: f"{value:.2f}" for name, value in values.items()}


def _curve_row(name: str, curve: Curve) -> dict[str, str]:
    cells = {str(n): _cell(runs) for n, runs in sorted(curve.bandwidths_mib_s.items())}
    return {"pattern": name, **cells, "IOR": curve.config.command_line(launcher=True)}


def _cell(runs: Sequence[float]) -> str:
    return f"{fmean(runs):.4g} ±{variation(runs):.0%} ({len(runs)})"


def _curve_point(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what the heading says, and what is not there."""
    return {name: value for name, value in row.items() if name != "application" and value != ""}


_STYLE = "h3 { font-size: 0.95rem; margin: 1rem 0 0; }\n"
_LEGEND = """<p>Error: |Bw &minus; Ba| / Ba of each rerun Ba from the mean Bw that is predicted.
Noise floor: the same of the application's own repetitions as predictions of each other. Regret:
the share of the best measured bandwidth that the choice gives away.</p>"""
