"""`ioncast phases`: print the I/O phases of Darshan logs."""

from __future__ import annotations

import sys

import click

from ioncast_base.errors import IoncastError
from summario.extraction_options import extraction_options
from summario.phases import tables
from summario.phases.extract import extract
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Extraction, Phase
from summario.reading.log import read_log

# Fewer logs are read so fast that they need no progress bar.
FEW = 20
FORMATS = {"table": tables.to_text, "csv": tables.to_csv, "json": tables.to_json}


@click.command(
    epilog="""\b
Examples:
  ioncast phases app.darshan
  ioncast phases --format csv *.darshan > phases.csv
  ioncast phases --layer posix --all-files app.darshan
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="Print a table for people, CSV or JSON.",
)
@extraction_options
def phases(
    logs: tuple[str, ...],
    output_format: str,
    extraction: ExtractionSettings,
) -> None:
    """Print the I/O phases of Darshan logs.

    Errors in a log go to standard error. Then the exit code is 2, but the phases of the other
    logs are printed.
    """

    def phases_of(path: str) -> Extraction | IoncastError:
        try:
            return extract(read_log(path), extraction)
        except IoncastError as error:
            return error

    found: list[Phase] = []
    exit_code = 0
    with click.progressbar(
        map(phases_of, logs),
        length=len(logs),
        label="reading logs",
        file=sys.stderr,
        hidden=len(logs) < FEW or not sys.stderr.isatty(),
    ) as results:
        for path, result in zip(logs, results, strict=True):
            if isinstance(result, IoncastError):
                click.echo(f"ioncast: {result}", err=True)
                exit_code = result.exit_code
                continue
            found += result.phases
            for warning in result.warnings:
                click.echo(f"ioncast: warning: {path}: {warning}", err=True)
    if found or not exit_code or output_format != "table":
        click.echo(FORMATS[output_format](found), nl=output_format != "csv")
    sys.exit(exit_code)
