"""`ioncast phases`: print the I/O phases of Darshan logs."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import click

from ioncast_base.command_options import Number
from ioncast_base.errors import IoncastError
from summario.phases import tables
from summario.phases.extract import LAYERS, extract_phases
from summario.phases.values import Phase
from summario.reading.log import LogReader

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
@click.option(
    "--threshold",
    type=Number(0, 1),
    default=0.2,
    show_default=True,
    help="Share of requests that may be out of order.",
)
@click.option(
    "--time-distance",
    type=Number(min=0),
    default=1.0,
    show_default=True,
    help="A longer time without I/O, in seconds, ends a phase.",
)
@click.option(
    "--layer",
    type=click.Choice(LAYERS),
    default="highest",
    show_default=True,
    help="Calls to count: those of each file's highest layer, of one layer, or of all.",
)
@click.option("--all-files", is_flag=True, help="Also count system files and standard streams.")
def phases(
    logs: tuple[str, ...],
    output_format: str,
    threshold: float,
    time_distance: float,
    layer: str,
    all_files: bool,
) -> None:
    """Print the I/O phases of Darshan logs.

    Errors in a log go to standard error. Then the exit code is 2, but the phases of the other
    logs are printed.
    """

    def extract(path: str) -> tuple[list[Phase], tuple[str, ...]] | IoncastError:
        try:
            log = reader.read(path)
            found = extract_phases(
                log,
                threshold=threshold,
                time_distance=time_distance,
                layer=layer,
                all_files=all_files,
            )
        except IoncastError as error:
            return error
        return found, log.warnings

    # A process of its own reads each log; the threads only wait for these processes.
    found: list[Phase] = []
    exit_code = 0
    with (
        LogReader() as reader,
        ThreadPoolExecutor(os.cpu_count()) as pool,
        click.progressbar(
            pool.map(extract, logs),
            length=len(logs),
            label="reading logs",
            file=sys.stderr,
            hidden=len(logs) < FEW or not sys.stderr.isatty(),
        ) as results,
    ):
        for path, result in zip(logs, results, strict=True):
            if isinstance(result, IoncastError):
                click.echo(f"ioncast: {result}", err=True)
                exit_code = result.exit_code
                continue
            found += result[0]
            for warning in result[1]:
                click.echo(f"ioncast: warning: {path}: {warning}", err=True)
    if found or not exit_code or output_format != "table":
        click.echo(FORMATS[output_format](found), nl=output_format != "csv")
    sys.exit(exit_code)
