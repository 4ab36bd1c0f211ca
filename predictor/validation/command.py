"""`ioncast validate`: predictions held against reruns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import click

from ioncast_base.command_options import database_option, format_option
from ioncast_base.errors import InputError
from predictor.commands import at, command_line, nodes_option
from predictor.composition.asking import configurations_of, read_knowledge, read_phases
from predictor.composition.prediction import Prediction, predict
from predictor.validation.against_reruns import Expected, compare, noise_floor
from predictor.validation.dunn import composed_repetitions, dunn
from predictor.validation.error_sources import PartForecast, explain
from predictor.validation.reruns import Rerun, cells, read_reruns, start_times_s
from predictor.validation.result_tables import Validated, to_json, to_text
from summario.phases.values import Phase

Forecast = Callable[[Sequence[Phase]], Prediction]


def parse_logs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse APPLICATION=LOG, once for each application."""
    logs: dict[str, str] = {}
    for value in values:
        application, equals, log = value.partition("=")
        if not (equals and application.strip() and log):
            raise click.BadParameter(f"{value!r} is not APPLICATION=LOG, such as hacc-io=a.darshan")
        if application.strip() in logs:
            raise click.BadParameter(f"{application.strip()!r} has two logs")
        logs[application.strip()] = log
    return logs


@click.command(
    "validate",
    epilog="""\b
Examples:
  ioncast validate reruns.csv --system mysite --log hacc-io=hacc.darshan --nodes 16
  ioncast validate reruns.csv --system mysite --log a=a.darshan --log b=b.csv --html report.html
  ioncast validate reruns.csv --system mysite --log a=a.darshan --explain-error
""",
)
@click.argument("reruns_csv", metavar="RERUNS.csv", type=click.Path())
@click.option("--system", required=True, help="The system that the reruns ran on.")
@click.option(
    "--log",
    "logs",
    required=True,
    multiple=True,
    callback=parse_logs,
    metavar="APPLICATION=LOG|PHASES.csv",
    help="What an application's prediction rests on; once for each application.",
)
@nodes_option
@click.option("--engine", help="The program whose benchmarks to predict from, such as ior or fio.")
@click.option(
    "--explain-error", "explained", is_flag=True, help="Split the error by where it comes from."
)
@format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Write a report as well.")
@database_option
def validate(
    reruns_csv: str,
    system: str,
    logs: Mapping[str, str],
    nodes: int | None,
    engine: str | None,
    explained: bool,
    output_format: str,
    html: str | None,
    location: str | None,
) -> None:
    """Hold predictions against measured reruns.

    RERUNS.csv has the columns application, io_nodes, repetition and bandwidth_mib_s, or log
    (a rerun's Darshan log) in the place of the last; and started, where that is known. Beside
    each error stands the noise floor: how well the application's own repetitions predict each
    other.
    """
    reruns: dict[str, list[Rerun]] = {}
    for rerun in read_reruns(reruns_csv):
        reruns.setdefault(rerun.application, []).append(rerun)
    warnings = _check_logs(list(reruns), logs, reruns_csv)
    jobs = {application: read_phases(logs[application]) for application in reruns}
    wanted = [config for phases, _ in jobs.values() for config in configurations_of(phases, nodes)]
    knowledge, limits = read_knowledge(command_line(location), system, wanted, engine)
    warnings += limits

    def forecast(phases: Sequence[Phase], where: str) -> Prediction:
        with at(where):
            return predict(phases, knowledge, system=system, nodes=nodes)

    results = []
    for application, runs in reruns.items():
        phases, found = jobs[application]
        prediction = forecast(phases, logs[application])
        found += prediction.warnings + _reservations(prediction, runs)
        warnings += [f"{application}: {warning}" for warning in found]
        parts = part_forecasts(prediction, partial(forecast, where=logs[application]))
        results.append(hold_against(runs, prediction, parts, explained=explained))
    try:
        results = [replace(one, dunn_p_values=dunn(one.benchmark, one.reruns)) for one in results]
    except InputError as error:
        warnings.append(str(error))
    if html is not None:
        # Plotly takes longer to import than most databases to read.
        from predictor.validation.report_page import write_html  # noqa: PLC0415

        write_html(results, html, system=system, warnings=warnings)
    if output_format == "json":
        record = {"system": system, "nodes": nodes, **to_json(results), "warnings": warnings}
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(to_text(results))
    for warning in warnings:
        click.echo(f"ioncast: warning: {warning}", err=True)


def part_forecasts(prediction: Prediction, forecast: Forecast) -> tuple[PartForecast, ...]:
    """What is predicted of each part of each phase by itself."""
    return tuple(
        PartForecast(
            kind=phase.kind,
            match=found.kind,
            bytes=part.bytes,
            time_s={point.io_nodes: point.time_s for point in forecast([alone]).curve},
        )
        for phase, part, found in (
            (matched.phase, *pair) for matched in prediction.phases for pair in matched.parts
        )
        for alone in (replace(phase, parts=(part,), bytes=part.bytes, requests=part.requests),)
    )


def hold_against(
    reruns: Sequence[Rerun],
    prediction: Prediction,
    parts: Sequence[PartForecast],
    *,
    explained: bool,
) -> Validated:
    """Hold one application's prediction against its reruns."""
    expected = {
        point.io_nodes: Expected(
            point.bandwidth_mib_s.mean, point.bandwidth_mib_s.p10, point.bandwidth_mib_s.p90
        )
        for point in prediction.curve
    }
    measured = cells(reruns)
    return Validated(
        application=reruns[0].application,
        expected=expected,
        reruns=measured,
        parts=tuple(parts),
        benchmark=_benchmark(prediction),
        prediction=compare(expected, measured),
        floor=noise_floor({n: runs for n, runs in measured.items() if n in expected}),
        sources=explain(expected, measured, parts, start_times_s(reruns)) if explained else None,
    )


def _benchmark(prediction: Prediction) -> dict[int, tuple[float, ...]]:
    """The repetitions of what was measured for the job; none where a part has no benchmark."""
    pairs = [pair for matched in prediction.phases for pair in matched.parts if pair[0].bytes]
    work = [(part.bytes, found.curve.bandwidths_mib_s) for part, found in pairs if found.curve]
    return composed_repetitions(work) if len(work) == len(pairs) else {}


def _check_logs(applications: Sequence[str], logs: Mapping[str, str], where: str) -> list[str]:
    """Warnings of logs without reruns; reruns without a log are an error."""
    for application in applications:
        if application not in logs:
            raise InputError(
                f"{application!r} has reruns but no log to predict from",
                where=where,
                remedy=f"add --log '{application}=FILE.darshan' or leave its lines out",
            )
    return [
        f"{application}: no reruns of it are in {where}, so it is left out"
        for application in logs
        if application not in applications
    ]


def _reservations(prediction: Prediction, reruns: Sequence[Rerun]) -> tuple[str, ...]:
    """What of the reruns cannot be held against the prediction."""
    if not prediction.curve:
        return (f"nothing is predicted ({prediction.best.why})",)
    predicted = {point.io_nodes for point in prediction.curve}
    missing = [n for n in cells(reruns) if n not in predicted]
    if not missing:
        return ()
    listed = ", ".join(map(str, missing))
    return (f"the reruns with {listed} I/O nodes have no prediction and are not compared",)
