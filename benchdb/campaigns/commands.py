"""`ioncast campaign run|status|resume|report`: measure what the database lacks.

`ioncast campaign plan` belongs to the predictor, which knows what is lacking.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import humanize
from click.core import ParameterSource
from sqlalchemy import Engine
from tabulate import tabulate

from benchdb.campaigns import folder as folders
from benchdb.campaigns.collecting import Result, failures, result_of
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import CampaignFolder, Run
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.running import (
    Progress,
    forget_failures,
    last_error,
    progress_of,
    run_campaign,
)
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import check_new_system
from ioncast_base.command_options import database_option, format_option
from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text
from ior_configs import IorConfig
from ior_configs.campaign_files import campaign_text, read_campaign

_SHOWN = 10

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
    help="The program that measures; by default ior where it is found, else fio.",
)
_directory = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.group(
    epilog="""\b
Examples:
  ioncast campaign plan laptop --platform mysite.toml
  ioncast campaign run laptop --platform mysite.toml
  ioncast campaign status laptop-mysite
"""
)
def campaign() -> None:
    """Run benchmarks for the database, in random order, and keep every result."""


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
    help="A new folder for the campaign; by default named after campaign and system.",
)
@database_option
def run(
    source: str,
    platform_file: str,
    engine: str | None,
    directory: Path | None,
    location: str | None,
) -> None:
    """Run a campaign: a TOML file, or the name of one that ioncast brings.

    Every configuration runs with each of the platform's numbers of I/O nodes, all in random
    order. A run that fails is kept as failed and does not stop the others. Ctrl-C or a dead
    machine loses at most the run in flight; `ioncast campaign resume` goes on. The exit code
    is 1 when runs failed.
    """
    platform = read_platform(platform_file)
    planned = read_campaign(
        source, nodes=platform.nodes, processes_per_node=platform.processes_per_node
    )
    engine, program = find_engine(platform, engine)
    show_left_out(planned.configurations, platform, engine)
    if all(folders.obstacles(config, platform, engine) for config in planned.configurations):
        raise InputError(f"{platform.system} can run none of it with {engine}", where=source)
    _check_directories(platform)
    with opened_database(location) as database:
        with transaction(database) as connection:
            check_new_system(connection, platform.system)
        folder = folders.create(
            directory or Path(re.sub(r"[^\w.-]+", "-", f"{planned.name}-{platform.system}")),
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
@click.option("--retry-failed", is_flag=True, help="Run again what failed.")
@database_option
@click.pass_context
def resume(
    context: click.Context, directory: Path, retry_failed: bool, location: str | None
) -> None:
    """Go on with the campaign in DIR where it was stopped.

    Measurements go where they went before, unless --db says otherwise.
    """
    folder = folders.read(directory)
    if retry_failed:
        with folders.locked(folder):
            forget_failures(folder)
    if context.get_parameter_source("location") is not ParameterSource.COMMANDLINE:
        location = folder.database or location
    with opened_database(location) as database:
        _run(folder, database)


@campaign.command(epilog="\b\nExample:\n  ioncast campaign status laptop-mysite --format json")
@_directory
@format_option
def status(directory: Path, output_format: str) -> None:
    """Say how far the campaign in DIR is, and which runs failed and why."""
    folder = folders.read(directory)
    progress = _progress(folder)
    running = folders.is_running(folder)
    failed = failures(folder)
    if output_format == "json":
        record = {
            **_description(folder),
            "running": running,
            "runs": progress.runs,
            "done": progress.done,
            "failed": progress.failed,
            "left": progress.left,
            "failures": [_failure(*pair) for pair in failed],
        }
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(_headline(folder))
    state = "running" if running else "not running" if progress.left else "complete"
    click.echo(f"{state}: {_count(progress)}")
    _show_failures(failed)
    if progress.left and not running:
        click.echo(f"go on with `{_resume(folder)}`")


@campaign.command(
    epilog="""\b
Examples:
  ioncast campaign report laptop-mysite
  ioncast campaign report laptop-mysite --html report.html
""",
)
@_directory
@format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Draw the curves.")
def report(directory: Path, output_format: str, html: str | None) -> None:
    """Show what the campaign in DIR measured so far: a curve for each configuration."""
    # Plotly takes longer to import than the other commands take.
    from benchdb.campaigns.report import rows_of, write_html  # noqa: PLC0415

    folder = folders.read(directory)
    rows = rows_of(folder)
    if html is not None:
        write_html(folder, rows, html, _count(_progress(folder)))
    if output_format == "json":
        record = {**_description(folder), "configurations": [asdict(row) for row in rows]}
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(_headline(folder) + "\n")
    click.echo(tabulate([row.cells() for row in rows], headers="keys", disable_numparse=True))
    click.echo("\nMiB/s by number of I/O nodes: mean ±coefficient of variation (runs)")


def find_engine(platform: Platform, engine: str | None) -> tuple[str, str]:
    """Choose the engine and find its program.

    Parameters
    ----------
    platform : Platform
        Whose programs come first; one that it names is taken at its word, since it may be
        on the compute nodes only.
    engine : str or None
        The one that was asked for.

    Returns
    -------
    engine, program : str
        The engine's name, and the program's path or name.

    Raises
    ------
    InputError
        When there is none, or its runs with all numbers of I/O nodes would be the same.
    """
    for name in [engine] if engine else ENGINES:
        program = platform.programs.get(name) or shutil.which(name)
        if program:
            _check_tells_io_nodes(platform, name)
            return name, program
    missing = engine or " and ".join(ENGINES)
    raise InputError(
        f"not found on this machine: {missing}",
        remedy="install it, or name it in the platform file's table [programs]",
    )


def _check_tells_io_nodes(platform: Platform, engine: str) -> None:
    launched = ENGINES[engine].launched
    if platform.tells_io_nodes(launched=launched):
        return
    directory = "node_directory" if platform.node_directory else "test_directory"
    own = "test_directory, launch" if launched else directory
    raise InputError(
        f"with {engine} the runs would all be the same: nothing that it uses has {{io_nodes}}",
        where=platform.system,
        remedy=f"put {{io_nodes}} into {own} or [io_nodes_switch] of the platform file",
    )


def _check_directories(platform: Platform) -> None:
    """Find out before the first run what would let all of them fail.

    A job runs elsewhere, and a command before each run may make the directory.
    """
    if platform.slurm is not None or platform.io_nodes_switch.before:
        return
    for io_nodes in platform.io_nodes:
        directory = platform.test_directory.replace("{io_nodes}", str(io_nodes))
        _check_directory(directory, "the test directory", "test_directory")
        for directory in platform.node_directories(platform.nodes, io_nodes):
            _check_directory(directory, "the directory of a node", "node_directory")


def _check_directory(directory: str, what: str, key: str) -> None:
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(
            f"{what} is not there, or cannot be written to",
            where=directory,
            remedy=f"make it, or correct {key} in the platform file",
        )


def _run(folder: CampaignFolder, database: Engine) -> None:
    click.echo(_headline(folder), err=True)
    try:
        with reporting() as report:
            progress = run_campaign(folder, database, report)
    except KeyboardInterrupt as interrupt:
        click.echo(f"go on with `{_resume(folder)}`", err=True)
        raise click.Abort from interrupt
    click.echo(_count(replace(progress, seconds_left=None)))
    _show_failures(failures(folder))
    if progress.left:
        click.echo(
            f"{progress.left} runs never came to their end: {last_error(folder)};"
            f" `{_resume(folder)}` tries them again"
        )
    sys.exit(1 if progress.failed or progress.left else 0)


@contextmanager
def reporting(label: str = "") -> Iterator[Callable[[Progress], None]]:
    """Show progress on the standard error: in place on a terminal, else in a line now and then.

    Parameters
    ----------
    label : str
        What begins each line.
    """
    twentieth, within_line = -1, False

    def report(progress: Progress) -> None:
        nonlocal twentieth, within_line
        reached = 20 * (progress.runs - progress.left) // progress.runs
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{label}{_count(progress)}", err=True, nl=False)
            within_line = True
        elif reached > twentieth:
            click.echo(f"{label}{_count(progress)}", err=True)
        twentieth = reached

    try:
        yield report
    finally:
        if within_line:
            click.echo(err=True)


def _progress(folder: CampaignFolder) -> Progress:
    return progress_of([result_of(folder, run) for run in folder.runs])


def _count(progress: Progress) -> str:
    text = f"{progress.done} of {progress.runs} runs done"
    if progress.failed:
        text += f", {progress.failed} failed"
    if progress.left and progress.seconds_left is not None:
        text += f", {humanize.naturaldelta(progress.seconds_left)} left"
    return text


def _headline(folder: CampaignFolder) -> str:
    configurations = len({run.cell.config for run in folder.runs})
    return (
        f"{folder.campaign.name} on {folder.platform.system} with {folder.engine}, in"
        f" {_shown(folder)}: configurations: {configurations}, numbers of I/O nodes:"
        f" {len(folder.platform.io_nodes)}, repetitions: {folder.campaign.repetitions}"
    )


def _resume(folder: CampaignFolder) -> str:
    return f"ioncast campaign resume {shlex.quote(_shown(folder))}"


def _shown(folder: CampaignFolder) -> str:
    here = Path.cwd()
    return str(folder.path.relative_to(here) if folder.path.is_relative_to(here) else folder.path)


def show_left_out(configs: Iterable[IorConfig], platform: Platform, engine: str) -> None:
    """Warn of configurations that platform and engine cannot run."""
    reasons = {config: folders.obstacles(config, platform, engine) for config in configs}
    left_out = [config for config, why in reasons.items() if why]
    for config in left_out[:_SHOWN]:
        line = config.command_line(launcher=True)
        click.echo(f"ioncast: warning: left out: {line}: {'; '.join(reasons[config])}", err=True)
    if len(left_out) > _SHOWN:
        click.echo(f"ioncast: warning: left out: {len(left_out) - _SHOWN} more", err=True)


def _show_failures(failed: list[tuple[Run, Result]]) -> None:
    for run, result in failed[:_SHOWN]:
        line = run.cell.config.command_line(launcher=True)
        place = f"{run.cell.io_nodes} I/O nodes, repetition {run.repetition}"
        click.echo(f"failed: {line}, {place}: {result.reason}; see {run.path / 'log'}")
    if len(failed) > _SHOWN:
        click.echo(
            f"failed: {len(failed) - _SHOWN} more, see `ioncast campaign status --format json`"
        )


def _description(folder: CampaignFolder) -> dict[str, Any]:
    return {
        "campaign": folder.campaign.name,
        "system": folder.platform.system,
        "engine": folder.engine,
        "directory": str(folder.path),
    }


def _failure(run: Run, result: Result) -> dict[str, Any]:
    return {
        "configuration": run.cell.config.command_line(launcher=True),
        "io_nodes": run.cell.io_nodes,
        "repetition": run.repetition,
        "started": result.started,
        "reason": result.reason,
        "log": str(run.path / "log"),
    }
