"""`ioncast phases`: print the I/O phases of Darshan logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from ioncast_base.errors import IoncastError
from ioncast_base.visible_text import visible
from summario.extraction_options import extraction_options
from summario.phases import tables
from summario.phases.extract import extract
from summario.phases.many import FEW, from_all
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Extraction
from summario.reading.sources import find_sources
from summario.traces import trace_tables
from summario.traces.of_log import Trace, check_settings, trace


@dataclass(frozen=True)
class Kind:
    """How one kind of phases is found and printed.

    CSV and JSON are written while logs are read. The columns of a table need all phases.
    """

    result_of: Callable[..., Extraction | Trace]
    to_text: Callable[[Iterable[Any]], str]
    streams: Mapping[str, Callable[[Iterable[Iterable[Any]]], Iterator[str]]]


PHASES = Kind(extract, tables.to_text, {"csv": tables.stream_csv, "json": tables.stream_json})
TRACE_PHASES = Kind(
    trace, trace_tables.to_text, {"csv": trace_tables.stream_csv, "json": trace_tables.stream_json}
)


@click.command(
    epilog="""\b
Examples:
  ioncast phases app.darshan
  ioncast phases --format csv /logs/2026/11 > phases.csv
  ioncast phases --format csv '/logs/2026/**/*_app_*.darshan'
  gunzip -c old.tar.gz | tar -xO app.darshan | ioncast phases -
  ioncast phases --layer posix --all-files app.darshan
  ioncast phases --trace app.darshan
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", *PHASES.streams]),
    default="table",
    show_default=True,
    help="Print a table for people, CSV or JSON.",
)
@click.option(
    "--trace",
    "is_traced",
    is_flag=True,
    help="Print the phases that Darshan's trace (DXT) shows, with their slowest and fastest ranks.",
)
@extraction_options
def phases(
    logs: tuple[str, ...],
    output_format: str,
    is_traced: bool,
    extraction: ExtractionSettings,
) -> None:
    """Print the I/O phases of Darshan logs.

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input. Many logs are read on
    all cores.

    With --trace, a phase is a time in which the processes use one api without a long pause. Such
    phases come from requests, not from counters, so --threshold and --min-share mean nothing for
    them. A straggler is a rank that ends much later than the others.

    Errors in a log go to standard error. Then the exit code is 2, but the phases of the other
    logs are printed.
    """
    exit_code = 0
    kind = TRACE_PHASES if is_traced else PHASES
    if is_traced:
        check_settings(extraction)

    def found() -> Iterator[Sequence[Any]]:
        nonlocal exit_code
        sources = list(find_sources(logs))
        with click.progressbar(
            from_all(sources, partial(kind.result_of, settings=extraction)),
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
                name, of_log = result
                for warning in of_log.warnings:
                    click.echo(f"ioncast: warning: {visible(name)}: {warning}", err=True)
                yield of_log.phases

    if output_format == "table":
        everything = [phase for of_log in found() for phase in of_log]
        if everything or not exit_code:
            click.echo(kind.to_text(everything))
    else:
        for text in kind.streams[output_format](found()):
            click.echo(text, nl=False)
        if output_format == "json":
            click.echo()
    sys.exit(exit_code)
