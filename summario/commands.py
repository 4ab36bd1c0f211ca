"""`ioncast phases`: print the I/O phases of Darshan logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from ioncast_base.command_options import complain, formats, warn, with_progress
from ioncast_base.visible_text import visible
from summario.extraction_options import extraction_options, join_option
from summario.phases import tables
from summario.phases.extract import extract_run
from summario.phases.many import FEW, FromRun, find_runs, from_all
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Extraction
from summario.pydarshan_reader import read_with_pydarshan
from summario.reading.job import DarshanJob
from summario.reading.pydarshan import import_pydarshan
from summario.reading.sources import find_sources
from summario.requests import trace_tables
from summario.requests.of_log import TraceOfRun, check_settings, missing_traces, trace_run
from summario.runs.joining import JOINS, Join, runs_among

# Moves a terminal from the end of a progress bar to its start, and erases it (ECMA-48).
CLEAR_LINE = "\r\x1b[K"


@dataclass(frozen=True)
class PhaseListing:
    """How one kind of phases is printed. Only a table needs all phases before its first line."""

    result_of: Callable[..., Extraction | TraceOfRun]
    to_text: Callable[[Iterable[Any]], str]
    streams: Mapping[str, Callable[[Iterable[Iterable[Any]]], Iterator[str]]]


PHASES = PhaseListing(
    extract_run, tables.to_text, {"csv": tables.stream_csv, "json": tables.stream_json}
)
TRACE_PHASES = PhaseListing(
    trace_run,
    trace_tables.to_text,
    {"csv": trace_tables.stream_csv, "json": trace_tables.stream_json},
)


@click.command(
    epilog="""\b
Examples:
  ioncast phases app.darshan
  ioncast phases --format csv /logs/2026/11 > phases.csv
  ioncast phases --format csv '/logs/2026/**/*_app_*.darshan'
  gunzip -c old.tar.gz | tar -xO app.darshan | ioncast phases -
  ioncast phases --join steps *_id4711-*.darshan
  ioncast phases --layer posix --all-files app.darshan
  ioncast phases --phases dxt app.darshan
  ioncast phases --trace app.darshan
  ioncast phases --reader darshan app.darshan
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@formats("table", *PHASES.streams, help_text="Print a table for people, CSV or JSON.")
@click.option(
    "--trace",
    "is_traced",
    is_flag=True,
    help="Print the phases that Darshan's trace (DXT) shows, with their slowest and fastest ranks.",
)
@click.option(
    "--reader",
    type=click.Choice(["ioncast", "darshan"]),
    default="ioncast",
    show_default=True,
    help="Read logs with ioncast's own reader, or with PyDarshan for a second opinion"
    " on whole logs: it does not report every damage.",
)
@join_option("Join logs of one run")
@extraction_options
def phases(
    logs: tuple[str, ...],
    output_format: str,
    is_traced: bool,
    reader: str,
    join: Join | None,
    extraction: ExtractionSettings,
) -> None:
    """Print the I/O phases of Darshan logs.

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input. Many logs are read on
    all cores.

    Programs without MPI, such as Python's multiprocessing or Dask, write a log for each process.
    --join makes them one run: its times count from its earliest log, and a file that several
    processes used is shared.

    With --trace, a phase is a time in which the processes use one api without a long pause. Such
    phases come from requests, not from counters, so --threshold and --min-share mean nothing for
    them. A straggler is a rank that ends much later than the others.

    The table has the columns order, aggregators and fsync only where they say more than the
    others: order and aggregators with MPI-IO, fsync where it is called or not known. CSV and JSON
    always have them.

    Errors in a log go to standard error. Then the exit code is 2, but the phases of the other
    logs are printed.
    """
    kind = TRACE_PHASES if is_traced else PHASES
    if is_traced:
        check_settings(extraction)
    other_reader = None
    if reader == "darshan":
        # The processes that read logs inherit it, so each of them starts at once.
        import_pydarshan("--reader darshan")
        other_reader = read_with_pydarshan
    runs = find_runs(list(find_sources(logs)), join)
    result_of = partial(kind.result_of, settings=extraction)
    # Rows on the same terminal show the progress themselves.
    shows_progress = (
        len(runs) > FEW
        and sys.stderr.isatty()
        and (output_format == "table" or not sys.stdout.isatty())
    )
    results = from_all(runs, result_of, other_reader=other_reader)
    said = _Said(CLEAR_LINE if shows_progress else "")
    found = map(said.phases_of, with_progress(results, len(runs), shows_progress=shows_progress))
    if output_format == "table":
        everything = [phase for of_run in found for phase in of_run]
        if everything or not said.exit_code:
            click.echo(kind.to_text(everything))
    else:
        for text in kind.streams[output_format](found):
            click.echo(text, nl=False)
        if output_format == "json":
            click.echo()
    if said.without_trace:
        warning = missing_traces(said.without_trace, len(runs))
        warn(warning)
    if join is None and (hint := join_hint(said.jobs)):
        click.echo(f"ioncast: hint: {hint}", err=True)
    sys.exit(said.exit_code)


@dataclass
class _Said:
    """Prints the errors and warnings of runs, and keeps the facts that the end needs."""

    start_of_line: str
    jobs: list[DarshanJob] = field(default_factory=list)
    exit_code: int = 0
    without_trace: list[str] = field(default_factory=list)

    def phases_of(self, run: FromRun[Any]) -> Sequence[Any]:
        """Print the errors and warnings of a run, and return its phases."""
        for error in run.errors:
            complain(str(error), self.start_of_line)
            self.exit_code = error.exit_code
        self.jobs.extend(run.jobs)
        if run.result is None:
            return ()
        for warning in run.result.warnings:
            warn(f"{visible(run.name)}: {warning}", self.start_of_line)
        if isinstance(run.result, TraceOfRun) and run.result.is_missing:
            self.without_trace.append(run.name)
        phases: Sequence[Any] = run.result.phases
        return phases


def join_hint(jobs: Sequence[DarshanJob]) -> str | None:
    """Tell how logs of a job, without copies, can be joined; None if each log has its own job."""
    jobs = list(dict.fromkeys(jobs))
    for join in JOINS:
        run = max(runs_among(jobs, join), key=len, default=[])
        if len(run) > 1:
            what = "run" if join == "steps" else "job"
            return (
                f"{len(run)} logs belong to one {what} (job id {jobs[run[0]].id}):"
                f" --join {join} joins such logs"
            )
    return None
