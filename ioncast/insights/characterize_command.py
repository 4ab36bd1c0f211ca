"""`ioncast characterize`: print tables of the I/O of Darshan logs, side by side if several."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial

import click

from ioncast.insights.comparison.aligned_text import to_text
from ioncast.insights.comparison.comparing import TOLERANCE
from ioncast.insights.comparison.for_programs import beside_first, stream_csv, stream_json
from ioncast.insights.facts.gathering import COUNTED_MODULES, facts_of
from ioncast.insights.tables.characterising import Characterisation, characterised
from ioncast_base.command_options import Number, complain, formats, warn
from ioncast_base.visible_text import visible
from summario.extraction_options import join_option
from summario.phases.many import FromRun, find_runs, from_all
from summario.reading.sources import find_sources
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run

_STREAMS = {"csv": stream_csv, "json": stream_json}


@click.command(
    epilog="""\b
Examples:
  ioncast characterize app.darshan
  ioncast characterize before.darshan after.darshan
  ioncast characterize --html runs.html slow.darshan fast.darshan
  ioncast characterize --per-file --only '*.h5' app.darshan
  ioncast characterize --format csv --per-file app.darshan > tables.csv
  ioncast characterize --format json /logs/2026/11 > tables.json
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@formats("table", *_STREAMS, help_text="Print tables for people, CSV or JSON.")
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@click.option("--per-file", is_flag=True, help="Also describe each file.")
@click.option(
    "--only",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Count only files whose path or name matches, such as '*.h5'; may be repeated.",
)
@click.option(
    "--tolerance",
    type=Number(0, 1),
    default=TOLERANCE,
    show_default=True,
    help="Mark values that differ from the first log's by a larger share.",
)
@join_option("Join logs of one run")
@click.option("--all-files", is_flag=True, help="Also count system files and standard streams.")
def characterize(
    logs: tuple[str, ...],
    output_format: str,
    page: str | None,
    per_file: bool,
    patterns: tuple[str, ...],
    tolerance: float,
    join: Join | None,
    all_files: bool,
) -> None:
    """Print tables of what an application does to storage, from its Darshan logs.

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input.

    The tables are operations, pattern, request sizes and strides, requests by size, layers, time
    and files. Several logs stand side by side; values that differ from the first log's by more
    than the tolerance are marked with ≠. More than six logs have a line each.

    With --per-file, the table names the 20 files with most bytes; CSV and JSON have all tables of
    each file, without zeros.

    Errors in a log go to standard error. Then the exit code is 2, but the tables of the other
    logs are printed.
    """
    runs = find_runs(list(find_sources(logs)), join)
    result_of = partial(_characterised, all_files=all_files, by_file=per_file, patterns=patterns)
    said, kept = _Said(), list[Characterisation]()
    characterisations: Iterable[Characterisation] = said.results(
        from_all(runs, result_of, COUNTED_MODULES)
    )
    # JSON and CSV are written while logs are read; a table and a page need all runs.
    if output_format == "table" or page is not None:
        characterisations = kept = list(characterisations)
    if output_format == "table":
        if kept:
            click.echo(to_text(kept, tolerance))
    else:
        pairs = (
            beside_first(characterisations)
            if len(runs) > 1
            else ((None, run) for run in characterisations)
        )
        for text in _STREAMS[output_format](pairs, tolerance):
            click.echo(text, nl=False)
        if output_format == "json":
            click.echo()
    if page is not None and kept:
        # Only the page needs Jinja.
        from ioncast.insights.comparison.tables_page import write_html  # noqa: PLC0415

        write_html(kept, page, tolerance)
    sys.exit(said.exit_code)


def _characterised(
    run: Run, *, all_files: bool, by_file: bool, patterns: tuple[str, ...]
) -> Characterisation:
    return characterised(facts_of(run, all_files=all_files), by_file=by_file, patterns=patterns)


class _Said:
    """Prints errors and warnings of runs, and remembers the exit code."""

    exit_code = 0

    def results(self, runs: Iterable[FromRun[Characterisation]]) -> Iterator[Characterisation]:
        """Yield the tables of the runs that can be read."""
        for run in runs:
            for error in run.errors:
                complain(str(error))
                self.exit_code = error.exit_code
            if run.result is not None:
                for warning in run.result.warnings:
                    warn(f"{visible(run.name)}: {warning}")
                yield run.result
