"""`ioncast match` and `ioncast predict`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from benchdb.store.database import (
    ANOTHER,
    default_location,
    missing_file,
    transaction_on,
    without_password,
)
from ioncast_base.command_options import (
    database_option,
    emphasised,
    in_colour,
    table_format_option,
    warn,
)
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted, size
from predictor.asked_options import asked_options, nodes_option
from predictor.curve.asking import (
    RUN_MODULES,
    PredictionContext,
    PredictionRequest,
    ask,
    read_phases,
)
from predictor.curve.explanation import explain
from predictor.curve.prediction_formats import to_json, to_text
from predictor.matching.configurations import configuration, match_warnings, periodic_run
from predictor.verification.options import VerifySettings, verify_options
from predictor.verification.verification_formats import in_words, with_column, with_fields
from summario.extraction_options import extraction_options, join_option
from summario.phases.extract import extract_run
from summario.phases.periods import Period, find_periods, period_of_each
from summario.phases.periods import in_words as phases_in_words
from summario.phases.settings import ExtractionSettings
from summario.phases.tables import period_record
from summario.phases.values import Part, Phase
from summario.runs.given_run import read_run
from summario.runs.hosts import job_nodes, node_warnings
from summario.runs.joining import Join
from summario.runs.logs_of_run import named

if TYPE_CHECKING:
    from predictor.verification.verifying import Verified

source_argument = click.argument(
    "sources", metavar="LOG...|PHASES.csv", nargs=-1, required=True, type=click.Path()
)
one_run_option = join_option("Several logs must be of one run", default="steps")


@click.command(
    "match",
    epilog="""\b
Examples:
  ioncast match app.darshan
  ioncast match app.darshan --nodes 16
  ioncast match phases.csv --format json
  ioncast match app.darshan --layer posix --min-share 0.01
  ioncast match app.darshan --verify --work-dir /scratch/me
  ioncast match app.darshan --verify --platform mysite.toml --system mysite
""",
)
@source_argument
@nodes_option
@one_run_option
@extraction_options
@table_format_option
@verify_options
def match(
    sources: tuple[str, ...],
    nodes: int | None,
    join: Join,
    extraction: ExtractionSettings,
    output_format: str,
    verification: VerifySettings | None,
) -> None:
    """Print the IOR run that does the same I/O as each phase, ready to paste.

    LOG may be compressed with gzip; - is a log on standard input. A program without MPI writes
    a log for each process: give the logs of one run together, or their folder.

    A phase with several request sizes has one line for each size. Several files of a phase are
    repetitions with a new file each (-m -i). A run that reads needs its file: run the same line
    with -w -k first. Phases that repeat with equal pauses also have one line for all of them.

    --verify runs each line under Darshan and compares its log with the phase. A fidelity of 1 is
    the same I/O. It needs IOR, its launcher and Darshan's runtime; docs/predicting.md says more.
    """
    run = (
        None
        if verification is None
        else read_run(sources, join, "that --verify compares", RUN_MODULES)
    )
    found = extract_run(run, extraction) if run else read_phases(sources, extraction, join)
    of_job = job_nodes(nodes, found.nodes)
    number = of_job and of_job.number
    warnings = (*found.warnings, *node_warnings(nodes, found.nodes))
    for warning in (*warnings, *match_warnings(found.phases)):
        warn(warning)
    rows = _ior_runs(found.phases, number)
    verified: Sequence[Verified] = ()
    if run and verification:
        # The modules that run IOR take longer to import than most logs take to match.
        from predictor.verification.command import verified_here  # noqa: PLC0415

        verified = verified_here(run, found.phases, extraction, number, verification)
    if output_format == "json":
        sourced = [{**row, "nodes_source": of_job and of_job.source} for row in rows]
        click.echo(json.dumps(with_fields(sourced, verified), indent=1, ensure_ascii=False))
    elif rows:
        shown = [_shown(row) for row in rows]
        table = text_table(
            with_column(shown, verified),
            optional=["requests", "api", "spatiality", "type"],
            whole="ior",
        )
        notes = [_periodic(found.phases, rows), of_job and of_job.in_words]
        click.echo("\n\n".join([table, *filter(None, notes), *in_words(verified)]))
    else:
        click.echo("no I/O phases")


def _ior_runs(phases: Sequence[Phase], nodes: int | None) -> list[dict[str, Any]]:
    periods = period_of_each(phases)
    return [
        {
            "phase": index,
            "type": phase.operation,
            "api": phase.api,
            "spatiality": phase.spatiality,
            "order": phase.order,
            "fsync": phase.fsync,
            "requests": f"{part.requests} × {size(part.request_bytes)}",
            "nodes": nodes,
            "ior": configuration(phase, part, nodes).command_line(launcher=True),
            "period": period_record(periods.get(index)),
            "periodic_ior": _periodic_line(phase, part, nodes, periods.get(index)),
        }
        for index, phase in enumerate(phases)
        for part in phase.parts
    ]


def _periodic_line(
    phase: Phase, part: Part, nodes: int | None, period: Period | None
) -> str | None:
    """The IOR line for all phases of a period; None with several sizes or files in a phase."""
    config = configuration(phase, part, nodes)
    if period is None or len(phase.parts) > 1 or config.multi_file:
        return None
    return periodic_run(config, period).command_line(launcher=True)


def _periodic(phases: Sequence[Phase], rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which phases repeat, and the IOR line that does the same as all of them."""
    lines = {row["phase"]: row["periodic_ior"] for row in rows}
    return "\n".join(
        phases_in_words(period)
        + (f"; in one run: {line}" if (line := lines.get(period.phases[0])) else "")
        for period in find_periods(phases)
    )


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out unknown values, and those that other columns show too."""
    same = {"fsync", "period", "periodic_ior"}
    if row["order"] == row["spatiality"]:
        same.add("order")
    return {k: v for k, v in row.items() if v is not None and k not in same}


@click.command(
    "predict",
    epilog="""\b
Examples:
  ioncast predict app.darshan --system mysite --nodes 16
  ioncast predict phases.csv --system mysite --io-nodes 0,4,8 --format json
  ioncast predict app.darshan --system mysite --plot curve.html
  ioncast predict app.darshan --system mysite --engine fio
  ioncast predict app.darshan --system mysite --phases dxt
  ioncast predict app.darshan --system mysite --time-distance 5 --min-share 0.01
  ioncast predict *_id4711-*.darshan --system mysite --join job
  ioncast predict app.darshan --system mysite --ran-with 4 --available 6 --explain
""",
)
@source_argument
@asked_options
@one_run_option
@extraction_options
@click.option("--explain", "explained", is_flag=True, help="Also print the reasons, in words.")
@table_format_option
@click.option("--plot", metavar="FILE.html", type=click.Path(), help="Also draw the curve.")
@database_option
def predict_command(
    sources: tuple[str, ...],
    asked: PredictionRequest,
    join: Join,
    extraction: ExtractionSettings,
    explained: bool,
    output_format: str,
    plot: str | None,
    location: str | None,
) -> None:
    """Predict a job's bandwidth with each number of I/O nodes, and decide on one.

    The prediction uses the Darshan log of an earlier run of the same application, or its phases
    as `ioncast phases --format csv` prints them. Four of five runs should lie between p10 and
    p90. docs/predicting.md explains the output.

    LOG may be compressed with gzip; - is a log on standard input. A program without MPI writes
    a log for each process: give the logs of one run together, or their folder.
    """
    found = read_phases(sources, extraction, join)
    with at(named(sources)):
        prediction = ask(command_line(location), asked, found)
    if plot is not None:
        # Only the page needs Jinja.
        from predictor.curve.plots import write_html  # noqa: PLC0415

        write_html(prediction, plot)
    if output_format == "json":
        record = to_json(prediction)
        if extraction.changed:
            record["extraction"] = extraction.changed
        if explained:
            record["explanation"] = explain(prediction)
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(to_text(prediction, emphasised), color=in_colour())
    if explained:
        click.echo("\n" + "\n".join(explain(prediction)))
    for warning in prediction.warnings:
        warn(warning)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Add a place to input errors without one."""
    try:
        yield
    except InputError as error:
        error.where = error.where or where
        raise


def say_fitting(configurations: int) -> None:
    """Tell the user that a model is being fitted, which takes seconds."""
    click.echo(f"ioncast: fitting a model to {counted(configurations, 'configuration')}", err=True)


def _how_to_import(location: str | None) -> str:
    if missing_file(location) is None:
        return "see `ioncast bench import --help`"
    return f"the database does not exist yet; `ioncast bench import` creates it, or {ANOTHER}"


def command_line(location: str | None) -> PredictionContext:
    """Make the context of the command line; without a location on `default_location`."""
    return PredictionContext(
        transaction=partial(transaction_on, location),
        choose_engine="choose with --engine",
        import_first=_how_to_import(location),
        where=without_password(location or str(default_location())),
        before_fitting=say_fitting,
    )
