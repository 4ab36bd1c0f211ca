"""`ioncast check`: print the findings about the I/O of Darshan logs."""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ioncast.insights.checks.record import to_record
from ioncast.insights.checks.registry import all_checks, run_checks, site_checks
from ioncast.insights.checks.values import Case, Check, Thresholds
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.findings.rows import COLUMNS, to_rows
from ioncast.insights.findings.sarif import to_sarif
from ioncast.insights.findings.text import Record, to_listing, to_text
from ioncast.insights.findings.worst_runs import COLUMNS as SUMMARY_COLUMNS
from ioncast.insights.findings.worst_runs import RunsSeen, summary_rows, summary_text, to_summary
from ioncast_base.command_options import (
    WholeNumber,
    complain,
    database_option,
    formats,
    in_colour,
    warn,
    with_progress,
)
from ioncast_base.errors import InputError
from ioncast_base.limits import MOST_PREDICTED_IO_NODES
from ioncast_base.visible_text import visible
from summario.extraction_options import join_option
from summario.phases.many import FEW, FromRun, find_runs, from_all
from summario.phases.streamed import stream_csv, stream_json
from summario.reading.sources import find_sources
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run

if TYPE_CHECKING:
    from ioncast.allocation_of_run import RunQuestion

# Causes of these importances, or findings of these levels, make the command fail. An unusable log
# is exit code 2.
_FAILING = {
    "major": ("major",),
    "minor": ("major", "minor"),
    "high": ("HIGH",),
    "warn": ("HIGH", "WARN"),
}
_LEVELS = ("high", "warn")
_FOUND = 1
SETTINGS_VARIABLE = "IONCAST_CHECKS"
_COLOURS = {"major": "red", "minor": "yellow"}

settings_option = click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    type=click.Path(),
    envvar=SETTINGS_VARIABLE,
    show_envvar=True,
    help="A TOML file with other thresholds; docs/checks.md has one with all of them.",
)


@click.command(
    epilog="""\b
Examples:
  ioncast check app.darshan
  ioncast check app.darshan --details
  ioncast check app.darshan --html findings.html
  ioncast check /logs/2026/11
  ioncast check --format json /logs/2026/11 > findings.json
  ioncast check app.darshan --format sarif --fail-on major > findings.sarif
  ioncast check app.darshan --settings checks.toml --ignore M01,M07
  ioncast check app.darshan --ran-with 4 --system mysite
  ioncast check --list
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=click.Path())
@formats(
    *("table", "json", "csv", "sarif"),
    help_text="Print a table for people, JSON, CSV, or SARIF 2.1.0 for development platforms.",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@click.option(
    "--fail-on",
    type=click.Choice(list(_FAILING), case_sensitive=False),
    help="End with exit code 1 if a cause is major, or at least minor. The published levels (high,"
    " warn) need `fail_on_levels = true` in the settings.",
)
@click.option(
    "--details", is_flag=True, help="Print all findings and examples, also those of many runs."
)
@click.option(
    "--summary",
    "is_summary",
    is_flag=True,
    help="Print only the worst runs and the most frequent causes, as for several LOGs.",
)
@settings_option
@click.option("--ignore", metavar="CODE,...", help="Leave out these checks, such as M01,M07.")
@click.option(
    "--nodes",
    type=WholeNumber(min=1),
    help="Compute nodes of the job. By default those of the host names in its log.",
)
@join_option("Join logs of one run")
@click.option("--all-files", is_flag=True, help="Also count system files and standard streams.")
@click.option(
    "--ran-with",
    type=WholeNumber(0, MOST_PREDICTED_IO_NODES),
    metavar="N",
    help="Number of I/O nodes of the run in the log: I01 compares it with the decision.",
)
@click.option("--system", help="The system of --ran-with, whose measurements decide.")
@database_option
@click.option("--list", "is_list", is_flag=True, help="List all checks instead of checking a log.")
def check(
    logs: tuple[str, ...],
    output_format: str,
    page: str | None,
    fail_on: str | None,
    details: bool,
    is_summary: bool,
    settings_file: str | None,
    ignore: str | None,
    nodes: int | None,
    join: Join | None,
    all_files: bool,
    ran_with: int | None,
    system: str | None,
    location: str | None,
    is_list: bool,
) -> None:
    """Tell why the I/O of a run is slow: causes in the order of the time that each could save.

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input.

    The log tells how long a cause can take of the run time at most: 10 % or more is MAJOR, 1 % or
    more MINOR, less negligible. Each finding also has a published level: HIGH is very likely
    harmful, WARN may be, OK is good practice, INFO a fact. docs/checks.md explains each check and
    says where it comes from.

    Of several logs only the runs with most core-hours at stake and the most frequent causes are
    printed; --details prints the causes of each run before them.

    The exit code is 2 if a log cannot be read, else 1 if --fail-on found something.
    """
    thresholds = thresholds_of(settings_file)
    if fail_on in _LEVELS and not thresholds.fail_on_levels:
        raise InputError(
            "a published level says nothing about the time that it costs",
            where=f"--fail-on {fail_on}",
            remedy="use major or minor, or put `fail_on_levels = true` into the --settings",
        )
    for warning in site_checks().warnings:
        warn(warning)
    checks = without_checks(ignore.split(",") if ignore else (), all_checks(), "--ignore")
    if is_list:
        click.echo(_listing(checks, thresholds, output_format))
        return
    if not logs:
        raise click.MissingParameter(param_hint="'LOG...'", param_type="argument")
    record_of = partial(
        check_run,
        thresholds=thresholds,
        checks=checks,
        all_files=all_files,
        nodes=nodes,
        question=_question(ran_with, system, nodes, location),
    )
    runs = find_runs(list(find_sources(logs)), join)
    if is_summary and output_format == "sarif":
        raise InputError("SARIF has no summary", where="--summary", remedy="use json or csv")
    seen = _Seen(keeps=page is not None, warns=output_format in ("table", "csv"))
    results = from_all(runs, record_of, FACT_MODULES)
    # Runs that are printed on the same terminal show the progress themselves.
    is_silent = is_summary or (output_format == "table" and not details)
    shows_progress = (
        len(runs) > FEW and sys.stderr.isatty() and (is_silent or not sys.stdout.isatty())
    )
    found = seen.records_of(with_progress(results, len(runs), shows_progress=shows_progress))
    if is_summary:
        _print_summary(found, seen, output_format)
    elif output_format == "table":
        _print_tables(found, seen, details=details, is_one=len(runs) == 1)
    elif output_format == "sarif":
        records = list(found)
        click.echo(json.dumps(to_sarif(records, checks, thresholds, seen.errors), indent=1))
    else:
        _print_stream(found, output_format)
    if page is not None and seen.records:
        # Its import takes as long as checking a small log.
        from ioncast.show.findings_page import write_findings  # noqa: PLC0415

        write_findings(page, seen.records)
    sys.exit(seen.exit_code(_FAILING.get(fail_on or "", ())))


def thresholds_of(settings_file: str | None) -> Thresholds:
    """Read the thresholds of `settings_option`."""
    if settings_file is None:
        return Thresholds()
    # Pydantic takes longer to import than most logs take to check.
    from ioncast.insights.checks.settings import read_thresholds  # noqa: PLC0415

    return read_thresholds(settings_file)


def without_checks(
    ignored: Iterable[str], checks: Sequence[Check], where: str
) -> tuple[Check, ...]:
    """Leave out checks by their codes; an unknown code is an InputError."""
    codes = [code.strip().upper() for code in ignored]
    known = {check.code for check in checks}
    for code in codes:
        if code not in known:
            raise InputError(
                f"there is no check {code!r}",
                where=where,
                remedy="`ioncast check --list` names all checks",
            )
    return tuple(check for check in checks if check.code not in codes)


def _question(
    ran_with: int | None, system: str | None, nodes: int | None, location: str | None
) -> RunQuestion | None:
    if ran_with is None and system is None:
        return None
    if ran_with is None or system is None:
        raise InputError("--ran-with and --system belong together", remedy="give both")
    # The predictor takes much longer to import than a log takes to check.
    from ioncast.allocation_of_run import RunQuestion  # noqa: PLC0415

    return RunQuestion(ran_with, system, nodes, location)


def check_run(
    run: Run,
    *,
    thresholds: Thresholds,
    checks: Sequence[Check],
    all_files: bool = False,
    nodes: int | None = None,
    question: RunQuestion | None = None,
) -> dict[str, Any]:
    """Check a run, whose logs were read with `FACT_MODULES`; return its `to_record`."""
    facts = facts_of(run, all_files=all_files, nodes=nodes)
    allocation, warnings = (None, ()) if question is None else question.answer(run)
    record = to_record(run.name, run_checks(Case(facts, thresholds, allocation), checks), facts)
    return {**record, "warnings": [*record["warnings"], *warnings]}


def _listing(checks: Sequence[Check], thresholds: Thresholds, output_format: str) -> str:
    if output_format != "json":
        return to_listing(checks, thresholds)
    rows = [
        {
            "code": each.code,
            "levels": each.levels,
            "title": each.title,
            "condition": each.condition_with(thresholds),
            "source": each.source,
        }
        for each in checks
    ]
    return json.dumps(rows, indent=1)


@dataclass
class _Seen:
    """The errors, the warnings and the sums of all runs so far.

    Attributes
    ----------
    keeps, warns : bool
        Whether the records are needed at the end, and whether warnings go to standard error.
    records : list of Record
        The records of all runs, if they are needed.
    sums : RunsSeen
        The sums for the summary.
    found : set of str
        The importances of all causes, and the levels of all findings.
    errors : list of str
        The reasons why logs could not be read.
    """

    keeps: bool
    warns: bool
    records: list[Record] = field(default_factory=list)
    sums: RunsSeen = field(default_factory=RunsSeen)
    found: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def records_of(self, results: Iterable[FromRun[dict[str, Any]]]) -> Iterator[Record]:
        """Print the errors and warnings of runs, and yield their records."""
        for run in results:
            for error in run.errors:
                complain(str(error))
                self.errors.append(str(error))
            if run.result is None:
                continue
            if self.warns:
                for warning in run.result["warnings"]:
                    warn(f"{visible(run.name)}: {warning}")
            if self.keeps:
                self.records.append(run.result)
            self.sums.add(run.result)
            self.found.update(cause["importance"] for cause in run.result["causes"])
            self.found.update(finding["level"] for finding in run.result["findings"])
            yield run.result

    def exit_code(self, failing: Sequence[str]) -> int:
        """Tell the exit code; `failing` are the importances or levels of --fail-on."""
        if self.errors:
            return InputError.exit_code
        return _FOUND if self.found.intersection(failing) else 0


def _print_tables(records: Iterable[Record], seen: _Seen, *, details: bool, is_one: bool) -> None:
    """Print the causes of each run if there is one or if asked, and the sums of several."""
    for record in records:
        if is_one or details:
            text = to_text(record, _coloured, details=details)
            click.echo(text if is_one else f"{text}\n", color=in_colour())
    if not is_one and seen.sums.runs:
        click.echo(summary_text(seen.sums))
        if not details:
            click.echo("\n`ioncast check LOG` tells more about a run, --details about all.")


def _print_summary(records: Iterable[Record], seen: _Seen, output_format: str) -> None:
    # The sums need all records.
    collections.deque(records, maxlen=0)
    if output_format == "json":
        click.echo(json.dumps(to_summary(seen.sums), indent=1))
    elif output_format == "csv":
        for text in stream_csv(SUMMARY_COLUMNS, [summary_rows(seen.sums)]):
            click.echo(text, nl=False)
    else:
        click.echo(summary_text(seen.sums))


def _print_stream(records: Iterable[Record], output_format: str) -> None:
    if output_format == "csv":
        texts = stream_csv(COLUMNS, map(to_rows, records))
    else:
        texts = stream_json([record] for record in records)
    for text in texts:
        click.echo(text, nl=False)
    if output_format == "json":
        click.echo()


def _coloured(text: str, importance: str) -> str:
    return click.style(text, fg=_COLOURS.get(importance), bold=True)
