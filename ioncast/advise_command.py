"""`ioncast advise`: predict how many seconds advice would save."""

from __future__ import annotations

import json

import click

from ioncast.advice_of_run import ADVICE_MODULES, advise_run
from ioncast.checks_command import settings_option, thresholds_of
from ioncast_base.command_options import (
    database_option,
    emphasised,
    in_colour,
    table_format_option,
    warn,
)
from ioncast_base.errors import InputError
from ioncast_base.kinds import SMALL_REQUEST_BYTES
from ioncast_base.sizes import parse_size
from predictor.asked_options import asked_options
from predictor.commands import at, command_line, one_run_option
from predictor.curve.asking import PredictionRequest
from predictor.what_if.advice_formats import to_json, to_text
from summario.extraction_options import extraction_options
from summario.phases.settings import ExtractionSettings
from summario.runs.given_run import read_run
from summario.runs.joining import Join
from summario.runs.logs_of_run import named


def _parse_buffer(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> int | None:
    if value is None:
        return None
    try:
        size_bytes = parse_size(value)
    except InputError as error:
        raise click.BadParameter(f"{error.what}; {error.remedy}") from error
    if size_bytes < SMALL_REQUEST_BYTES:
        raise click.BadParameter(f"{value} is smaller than 1m")
    return size_bytes


@click.command(
    "advise",
    epilog="""\b
Examples:
  ioncast advise app.darshan --system mysite
  ioncast advise app.darshan --system mysite --nodes 16 --ran-with 4
  ioncast advise app.darshan --system mysite --buffer 16m
  ioncast advise app.darshan --system mysite --html advice.html
  ioncast advise app.darshan --system mysite --format json
""",
)
@click.argument("sources", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@asked_options
@click.option(
    "--buffer",
    "buffer_bytes",
    metavar="SIZE",
    callback=_parse_buffer,
    help="Size of larger requests, such as 16m: the buffer that the program could use. By default"
    " the smallest measured size of at least 1 MiB.",
)
@one_run_option
@extraction_options
@settings_option
@table_format_option
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@database_option
def advise(
    sources: tuple[str, ...],
    asked: PredictionRequest,
    buffer_bytes: int | None,
    join: Join,
    extraction: ExtractionSettings,
    settings_file: str | None,
    output_format: str,
    page: str | None,
    location: str | None,
) -> None:
    """Predict what following advice would save, in MiB/s and in seconds a run.

    The checks of `ioncast check` tell what to try: larger requests, collective calls, contiguous
    requests, each byte moved once, asynchronous I/O; another file access is always tried. The
    system's benchmarks tell the bandwidth, the decision and the seconds that each would save. If
    nothing similar was measured, the benchmark that would tell it is named instead.
    docs/predicting.md explains the output.

    LOG may be compressed with gzip; - is a log on standard input. A program without MPI writes
    a log for each process: give the logs of one run together, or their folder.
    """
    run = read_run(sources, join, "that the checks look at", ADVICE_MODULES)
    with at(named(sources)):
        advised = advise_run(
            command_line(location),
            asked,
            run,
            extraction=extraction,
            thresholds=thresholds_of(settings_file),
            buffer_bytes=buffer_bytes,
        )
    if page is not None:
        # Only the page needs Jinja.
        from predictor.what_if.advice_page import write_advice  # noqa: PLC0415

        write_advice(advised, page)
    if output_format == "json":
        click.echo(json.dumps(to_json(advised), indent=1))
        return
    click.echo(to_text(advised, emphasised), color=in_colour())
    for warning in advised.today.warnings:
        warn(warning)
