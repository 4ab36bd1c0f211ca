"""`ioncast campaign run|status|resume|report`: run benchmarks and store their measurements.

`ioncast campaign plan` is in the predictor, which knows which measurements are missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource
from sqlalchemy import Engine

from benchdb.campaigns import folder as folders
from benchdb.campaigns.campaign_formats import (
    failure_lines,
    headline,
    left_out_lines,
    report_to_json,
    report_to_text,
    resume_command,
    status_to_json,
    status_to_text,
)
from benchdb.campaigns.collecting import failures
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.prerequisites import find_engine, problems_before
from benchdb.campaigns.progress_lines import progress_text, reporting
from benchdb.campaigns.running import cells_to_run, forget_failures, last_error, run_campaign
from benchdb.campaigns.standing import status_of
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import check_new_system
from ioncast_base.command_options import (
    CommandGroup,
    complain,
    database_option,
    format_option,
    table_format_option,
    warn,
)
from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text
from ioncast_base.wording import counted
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, campaign_text, read_campaign

platform_option = click.option(
    "--platform",
    "platform_file",
    metavar="FILE.toml",
    required=True,
    type=click.Path(),
    help="The platform file; see docs/platform.md.",
)
engine_option = click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    help="The benchmark program; by default ior if it is found, else fio.",
)
_directory = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast campaign plan laptop --platform mysite.toml
  ioncast campaign run laptop --platform mysite.toml
  ioncast campaign status laptop-mysite
""",
)
def campaign() -> None:
    """Run benchmarks in random order, and store every result in the database."""


@campaign.command(
    epilog="""\b
Examples:
  ioncast campaign run laptop --platform mysite.toml
  ioncast campaign run patterns.toml --platform mysite.toml --engine ior --dir /scratch/patterns
""",
)
@click.argument("source", metavar="CAMPAIGN")
@platform_option
@engine_option
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="A new folder for the campaign; by default it is named after campaign and system.",
)
@database_option
def run(
    source: str,
    platform_file: str,
    engine: str | None,
    directory: Path | None,
    location: str | None,
) -> None:
    """Run CAMPAIGN: a TOML file, or the name of a bundled campaign.

    Bundled campaigns are laptop, forwarding, rr9366 and forge; docs/campaigns.md describes them.
    Every configuration runs with each of the platform's numbers of I/O nodes, in random order.
    Programs, launcher and space are checked first; every problem is one line, and nothing starts.
    A failed run does not stop the others, but three failures in a row with the same error do
    (same_failures_limit in the platform file). Ctrl-C or a crash of the machine loses only the run
    in progress; `ioncast campaign resume` continues. The exit code is 1 if runs failed.
    """
    platform = read_platform(platform_file)
    planned = read_campaign(
        source, nodes=platform.nodes, processes_per_node=platform.processes_per_node
    )
    engine, program = _ready(platform, engine, planned, source)
    with opened_database(location) as database:
        with transaction(database) as connection:
            check_new_system(connection, platform.system)
        folder = folders.create(
            directory or folders.usual_path(planned.name, platform.system),
            campaign=campaign_text(source),
            platform=read_text(Path(platform_file)),
            system=platform.system,
            engine=engine,
            program=program,
            database=location,
        )
        _run(folder, database)


@campaign.command(
    epilog="""\b
Examples:
  ioncast campaign resume laptop-mysite
  ioncast campaign resume laptop-mysite --retry-failed
""",
)
@_directory
@click.option("--retry-failed", is_flag=True, help="Run the failed runs again.")
@database_option
@click.pass_context
def resume(
    context: click.Context, directory: Path, retry_failed: bool, location: str | None
) -> None:
    """Continue the campaign in DIR where it stopped.

    Programs, launcher and space are checked first, as by `ioncast campaign run`. Measurements are
    stored in the database that the campaign began with, unless --db names another one.
    """
    folder = folders.read(directory)
    with folders.locked(folder):
        cells = cells_to_run(folder, retry_failed=retry_failed)
        if cells:
            _refuse(problems_before(folder.platform, folder.engine, folder.program, cells, _warn))
        if retry_failed:
            forget_failures(folder)
    if context.get_parameter_source("location") is not ParameterSource.COMMANDLINE:
        location = folder.database or location
    with opened_database(location) as database:
        _run(folder, database)


@campaign.command(epilog="\b\nExample:\n  ioncast campaign status laptop-mysite --format json")
@_directory
@format_option
def status(directory: Path, output_format: str) -> None:
    """Show the progress of the campaign in DIR, and which runs failed and why.

    Equal errors are one line with the number of their runs. The exit code is 1 if runs failed and
    no run succeeded, else 0.
    """
    folder = folders.read(directory)
    found = status_of(folder)
    if output_format == "json":
        click.echo(json.dumps(status_to_json(folder, found), indent=1))
    else:
        click.echo(status_to_text(folder, found))
    sys.exit(1 if found.state == "failed" else 0)


@campaign.command(
    epilog="""\b
Examples:
  ioncast campaign report laptop-mysite
  ioncast campaign report laptop-mysite --html report.html
""",
)
@_directory
@table_format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also draw the curves.")
def report(directory: Path, output_format: str, html: str | None) -> None:
    """Show the measurements of the campaign in DIR so far: a curve for each configuration."""
    # Only the page needs Jinja.
    from benchdb.campaigns.report import rows_of, write_html  # noqa: PLC0415

    folder = folders.read(directory)
    rows = rows_of(folder)
    if html is not None:
        write_html(folder, rows, html, progress_text(status_of(folder).progress))
    if output_format == "json":
        click.echo(json.dumps(report_to_json(folder, rows), indent=1))
    else:
        click.echo(report_to_text(folder, rows))


def show_left_out(configs: Iterable[IorConfig], platform: Platform, engine: str) -> None:
    """Warn about configurations that platform or engine cannot run."""
    for line in left_out_lines(configs, platform, engine):
        _warn(line)


def _ready(
    platform: Platform, asked: str | None, planned: Campaign, source: str
) -> tuple[str, str]:
    """Choose the engine and check everything that runs need; return engine and program."""
    problems = []
    engine, program = asked or next(iter(ENGINES)), None
    try:
        engine, program = find_engine(platform, asked)
    except InputError as error:
        problems.append(error)
    show_left_out(planned.configurations, platform, engine)
    cells = folders.cells_of(planned, platform, engine)
    if not cells:
        raise InputError(
            f"{platform.system} cannot run any of its configurations with {engine}", where=source
        )
    problems += problems_before(platform, engine, program, cells, _warn)
    _refuse(problems)
    return engine, program or ""


def _refuse(problems: Sequence[InputError]) -> None:
    """End the command with a line for each problem, if there is one."""
    for problem in problems[:-1]:
        complain(str(problem))
    for problem in problems[-1:]:
        raise problem


def _warn(sentence: str) -> None:
    warn(sentence)


def _run(folder: CampaignFolder, database: Engine) -> None:
    click.echo(headline(folder), err=True)
    try:
        with reporting() as report:
            progress = run_campaign(folder, database, report)
    except KeyboardInterrupt as interrupt:
        click.echo(f"continue with `{resume_command(folder)}`", err=True)
        raise click.Abort from interrupt
    click.echo(progress_text(replace(progress, seconds_left=None)))
    for line in failure_lines(failures(folder)):
        click.echo(line)
    if progress.left:
        click.echo(
            f"{counted(progress.left, 'run')} did not finish: {last_error(folder)};"
            f" `{resume_command(folder)}` tries again"
        )
    sys.exit(1 if progress.failed or progress.left else 0)
