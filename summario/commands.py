"""`ioncast phases`."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import click

from ioncast_base.errors import IoncastError
from summario.phases import tables
from summario.phases.extract import LAYERS, extract_phases
from summario.phases.values import Phase
from summario.reading.log import LogReader

# Logs that are read before anyone wonders.
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
    help="What to print.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Share of requests that may be out of order.",
)
@click.option(
    "--time-distance",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds without I/O that end a phase.",
)
@click.option(
    "--layer",
    type=click.Choice(LAYERS),
    default="highest",
    show_default=True,
    help="Which calls count: each file's highest layer, one layer, or all.",
)
@click.option("--all-files", is_flag=True, help="Keep system files and standard streams.")
def phases(
    logs: tuple[str, ...],
    output_format: str,
    threshold: float,
    time_distance: float,
    layer: str,
    all_files: bool,
) -> None:
    """Print the I/O phases of Darshan logs.

    A log that cannot be used is reported on standard error; the others are printed all
    the same and the exit code is 2.
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

    # Each log is read by a process of its own; the threads only wait for them.
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
