"""`ioncast check`: print the findings about the I/O of Darshan logs."""

from __future__ import annotations

import json
import sys
from collections import Counter
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
from ioncast.insights.findings.text import Record, levels_of, summary, to_listing, to_text
from ioncast_base.command_options import (
    WholeNumber,
    complain,
    database_option,
    in_colour,
    warn,
)
from ioncast_base.errors import InputError
from ioncast_base.limits import MOST_PREDICTED_IO_NODES
from ioncast_base.visible_text import visible
from summario.extraction_options import join_option
from summario.phases.many import FromRun, find_runs, from_all
from summario.phases.streamed import stream_csv, stream_json
from summario.reading.sources import find_sources
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run

if TYPE_CHECKING:
    from ioncast.allocation_of_run import Question

# Findings of these levels make the command fail. An unusable log is exit code 2.
_FAILING = {"high": ("HIGH",), "warn": ("HIGH", "WARN")}
_FOUND = 1
_COLOURS = {"HIGH": "red", "WARN": "yellow", "OK": "green"}

settings_option = click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    type=click.Path(),
    envvar="IONCAST_CHECKS",
    show_envvar=True,
    help="A TOML file with other thresholds; docs/checks.md has one with all of them.",
)


@click.command(
    epilog="""\b
Examples:
  ioncast check app.darshan
  ioncast check app.darshan --html findings.html
  ioncast check --format json /logs/2026/11 > findings.json
  ioncast check app.darshan --format sarif --fail-on high > findings.sarif
  ioncast check app.darshan --settings checks.toml --ignore M01,M07
  ioncast check app.darshan --ran-with 4 --system mysite
  ioncast check --list
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=click.Path())
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv", "sarif"]),
    default="table",
    show_default=True,
    help="Print a table for people, JSON, CSV, or SARIF 2.1.0 for development platforms.",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@click.option(
    "--fail-on",
    type=click.Choice(list(_FAILING), case_sensitive=False),
    help="End with exit code 1 after a finding of level HIGH (high), or HIGH or WARN (warn).",
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
    """Check the I/O of Darshan logs, and print the findings with advice.

    LOG is a file, also one compressed with gzip; a folder, for all *.darshan and *.darshan.gz
    in it and below; a quoted pattern; or - for a log on standard input.

    HIGH is very likely harmful. WARN may be harmful, but the log cannot tell. OK is good practice.
    INFO is a fact. docs/checks.md explains each check and says where it comes from.

    The exit code is 2 if a log cannot be read, else 1 if --fail-on found something.
    """
    thresholds = thresholds_of(settings_file)
    for warning in site_checks().warnings:
        warn(warning)
    checks = _without(ignore, all_checks())
    if is_list:
        click.echo(_listing(checks, thresholds, output_format))
        return
    if not logs:
        raise click.MissingParameter(param_hint="'LOG...'", param_type="argument")
    record_of = partial(
        _record_of,
        thresholds=thresholds,
        checks=checks,
        all_files=all_files,
        nodes=nodes,
        question=_question(ran_with, system, nodes, location),
    )
    runs = find_runs(list(find_sources(logs)), join)
    seen = _Seen(keeps=page is not None, warns=output_format in ("table", "csv"))
    found = seen.records_of(from_all(runs, record_of, FACT_MODULES))
    if output_format == "table":
        _print_tables(found, seen)
    elif output_format == "sarif":
        records = list(found)
        click.echo(json.dumps(to_sarif(records, checks, thresholds, seen.errors), indent=1))
    else:
        _print_stream(found, output_format)
    if page is not None and seen.records:
        # Its import takes as long as checking a small log.
        from ioncast.insights.findings.findings_page import write_findings  # noqa: PLC0415

        write_findings(page, seen.records)
    sys.exit(seen.exit_code(_FAILING.get(fail_on or "", ())))


def thresholds_of(settings_file: str | None) -> Thresholds:
    """Read the thresholds of `settings_option`."""
    if settings_file is None:
        return Thresholds()
    # Pydantic takes longer to import than most logs take to check.
    from ioncast.insights.checks.settings import read_thresholds  # noqa: PLC0415

    return read_thresholds(settings_file)


def _without(ignored: str | None, checks: Sequence[Check]) -> tuple[Check, ...]:
    codes = [code.strip().upper() for code in ignored.split(",")] if ignored else []
    known = {check.code for check in checks}
    for code in codes:
        if code not in known:
            raise InputError(
                f"there is no check {code!r}",
                where="--ignore",
                remedy="`ioncast check --list` names all checks",
            )
    return tuple(check for check in checks if check.code not in codes)


def _question(
    ran_with: int | None, system: str | None, nodes: int | None, location: str | None
) -> Question | None:
    if ran_with is None and system is None:
        return None
    if ran_with is None or system is None:
        raise InputError("--ran-with and --system belong together", remedy="give both")
    # The predictor takes much longer to import than a log takes to check.
    from ioncast.allocation_of_run import Question  # noqa: PLC0415

    return Question(ran_with, system, nodes, location)


def _record_of(
    run: Run,
    *,
    thresholds: Thresholds,
    checks: Sequence[Check],
    all_files: bool,
    nodes: int | None,
    question: Question | None,
) -> dict[str, Any]:
    """Check a run."""
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
    """The errors, warnings and levels of all runs so far.

    Attributes
    ----------
    keeps, warns : bool
        Whether the records are needed at the end, and whether warnings go to standard error.
    records : list of Record
        The records of all runs, if they are needed.
    runs : int
        The number of runs.
    with_level : Counter of str
        The number of runs that have findings of a level.
    errors : list of str
        The reasons why logs could not be read.
    """

    keeps: bool
    warns: bool
    records: list[Record] = field(default_factory=list)
    runs: int = 0
    with_level: Counter[str] = field(default_factory=Counter)
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
            self.runs += 1
            self.with_level.update(levels_of(run.result).keys())
            yield run.result

    def exit_code(self, failing: Sequence[str]) -> int:
        """Tell the exit code of the command; `failing` are the levels of --fail-on."""
        if self.errors:
            return InputError.exit_code
        return _FOUND if any(self.with_level[level] for level in failing) else 0


def _print_tables(records: Iterable[Record], seen: _Seen) -> None:
    for number, record in enumerate(records):
        text = to_text(record, _coloured)
        click.echo(f"\n{text}" if number else text, color=in_colour())
    if seen.runs > 1:
        click.echo(f"\n{summary(seen.runs, seen.with_level)}")


def _print_stream(records: Iterable[Record], output_format: str) -> None:
    if output_format == "csv":
        texts = stream_csv(COLUMNS, map(to_rows, records))
    else:
        texts = stream_json([record] for record in records)
    for text in texts:
        click.echo(text, nl=False)
    if output_format == "json":
        click.echo()


def _coloured(level: str) -> str:
    return click.style(level, fg=_COLOURS.get(level.strip()), bold=True)
