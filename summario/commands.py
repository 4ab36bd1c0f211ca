"""`ioncast phases`: print the I/O phases of Darshan logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from ioncast_base.errors import IoncastError
from ioncast_base.visible_text import visible
from summario.extraction_options import extraction_options
from summario.phases import tables
from summario.phases.many import FEW, extract_all
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Phase
from summario.reading.sources import find_sources

# CSV and JSON are written while logs are read. The columns of a table need all phases.
STREAMS = {"csv": tables.stream_csv, "json": tables.stream_json}


@click.command(
    epilog="""\b
Examples:
  ioncast phases app.darshan
  ioncast phases --format csv /logs/2026/11 > phases.csv
  ioncast phases --format csv '/logs/2026/**/*_app_*.darshan'
  gunzip -c old.tar.gz | tar -xO app.darshan | ioncast phases -
  ioncast phases --layer posix --all-files app.darshan
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", *STREAMS]),
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

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input. Many logs are read on
    all cores.

    Errors in a log go to standard error. Then the exit code is 2, but the phases of the other
    logs are printed.
    """
    exit_code = 0

    def found() -> Iterator[Sequence[Phase]]:
        nonlocal exit_code
        sources = list(find_sources(logs))
        with click.progressbar(
            extract_all(sources, extraction),
            length=len(sources),
            label="reading logs",
            file=sys.stderr,
            hidden=len(sources) <= FEW or not sys.stderr.isatty(),
        ) as results:
            for result in results:
                if isinstance(result, IoncastError):
                    click.echo(f"ioncast: {result}", err=True)
                    exit_code = result.exit_code
                    continue
                name, extracted = result
                for warning in extracted.warnings:
                    click.echo(f"ioncast: warning: {visible(name)}: {warning}", err=True)
                yield extracted.phases

    if output_format == "table":
        everything = [phase for of_log in found() for phase in of_log]
        if everything or not exit_code:
            click.echo(tables.to_text(everything))
    else:
        for text in STREAMS[output_format](found()):
            click.echo(text, nl=False)
        if output_format == "json":
            click.echo()
    sys.exit(exit_code)
