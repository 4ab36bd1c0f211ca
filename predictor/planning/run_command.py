"""`ioncast campaign run|resume`: run benchmarks, all in random order or the most useful ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource
from sqlalchemy import Engine

from benchdb.campaigns import folder as folders
from benchdb.campaigns.campaign_formats import (
    adaptive_text,
    ended_run_text,
    failure_lines,
    headline,
    resume_command,
)
from benchdb.campaigns.collecting import failures
from benchdb.campaigns.commands import (
    directory_argument,
    engine_option,
    platform_option,
    show_left_out,
)
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import AdaptiveGoal, CampaignFolder
from benchdb.campaigns.mdtest_engine import MDTEST
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.prerequisites import find_engine, find_mdtest, problems_before
from benchdb.campaigns.progress_lines import progress_text, reporting
from benchdb.campaigns.running import cells_to_run, forget_failures, last_error, run_campaign
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import check_new_system
from ioncast_base.command_options import complain, database_option, warn
from ioncast_base.errors import InputError
from ioncast_base.times import parse_duration
from ioncast_base.toml_files import read_text
from ioncast_base.wording import counted
from ior_configs.campaign_files import Campaign, campaign_text, read_campaign

# The covariance of more cells would take 200 MB and more, and longer to compute than a short run.
_MOST_CELLS = 5_000


@click.command(
    epilog="""\b
Examples:
  ioncast campaign run laptop --platform mysite.toml
  ioncast campaign run patterns.toml --platform mysite.toml --engine ior --dir /scratch/patterns
  ioncast campaign run needed.toml --platform mysite.toml --adaptive --regret 0.03 --budget 4h
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
@click.option(
    "--adaptive", is_flag=True, help="Choose each run by the results so far, and run no other."
)
@click.option(
    "--regret",
    metavar="SHARE",
    type=click.FloatRange(0, 1, max_open=True),
    help="With --adaptive: stop when choices of I/O nodes are expected to lose at most SHARE of the"
    " bandwidth, such as 0.03.",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="With --adaptive: begin no run that would end later than TIME after the start: 90m, 4h.",
)
@database_option
def run(
    source: str,
    platform_file: str,
    engine: str | None,
    directory: Path | None,
    adaptive: bool,
    regret: float | None,
    budget: str | None,
    location: str | None,
) -> None:
    """Run CAMPAIGN: a TOML file, or the name of a bundled campaign.

    Bundled campaigns are laptop, forwarding, rr9366 and forge; docs/campaigns.md describes them.
    Every configuration runs with each of the platform's numbers of I/O nodes, in random order.
    Programs, launcher and space are checked first; every problem is one line, and nothing starts.
    A failed run does not stop the others, but three failures in a row with the same error do
    (same_failures_limit in the platform file). Ctrl-C or a crash of the machine loses only the run
    in progress; `ioncast campaign resume` continues. The exit code is 1 if runs failed.

    With --adaptive only the runs that teach most are run, at most as many repetitions of each as
    CAMPAIGN says. After each result the next run is chosen: the one by which decisions gain most
    for its time, and in turn the one that makes bandwidths surest. Applications weigh as much as
    they spend time in I/O, if CAMPAIGN is from `ioncast campaign plan --from-logs`.
    """
    goal = _goal(adaptive, regret, budget)
    platform = read_platform(platform_file)
    planned = read_campaign(
        source, nodes=platform.nodes, processes_per_node=platform.processes_per_node
    )
    if goal is not None and planned.spread_s is not None:
        raise InputError(
            "an adaptive campaign cannot be spread over time",
            where=source,
            remedy="remove the key `spread`",
        )
    _check_files(planned, goal, source)
    engine, program, mdtest = _ready(platform, engine, planned, source)
    cells = len(folders.cells_of(planned, platform, engine))
    if goal is not None and cells > _MOST_CELLS:
        raise InputError(
            f"an adaptive campaign has at most {_MOST_CELLS:,} cells, this one {cells:,}",
            where=source,
            remedy="list fewer configurations",
        )
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
            mdtest=mdtest,
            database=location,
            goal=goal,
        )
        _run(folder, database)


@click.command(
    epilog="""\b
Examples:
  ioncast campaign resume laptop-mysite
  ioncast campaign resume laptop-mysite --retry-failed
""",
)
@directory_argument
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
    _check_files(folder.campaign, folder.goal, str(directory / "campaign.toml"))
    with folders.locked(folder):
        cells = cells_to_run(folder, retry_failed=retry_failed)
        if cells:
            _refuse(problems_before(folder.platform, _programs(folder), cells, warn))
        if retry_failed:
            forget_failures(folder)
    if context.get_parameter_source("location") is not ParameterSource.COMMANDLINE:
        location = folder.database or location
    with opened_database(location) as database:
        _run(folder, database)


def _ready(
    platform: Platform, asked: str | None, planned: Campaign, source: str
) -> tuple[str, str, str | None]:
    """Choose the engine and check everything that runs need; return it, its program and mdtest."""
    problems = []
    mdtest = None
    engine, program = asked or next(iter(ENGINES)), None
    try:
        engine, program = find_engine(platform, asked)
    except InputError as error:
        problems.append(error)
    try:
        mdtest = find_mdtest(platform, planned)
    except InputError as error:
        problems.append(error)
    show_left_out((*planned.configurations, *planned.files), platform, engine)
    cells = folders.cells_of(planned, platform, engine)
    if not cells:
        raise InputError(
            f"{platform.system} cannot run any of its configurations with {engine}", where=source
        )
    problems += problems_before(platform, {engine: program, MDTEST.name: mdtest}, cells, warn)
    _refuse(problems)
    return engine, program or "", mdtest


def _check_files(campaign: Campaign, goal: AdaptiveGoal | None, where: str) -> None:
    if goal is not None and campaign.files:
        raise InputError(
            "an adaptive campaign measures bandwidths, and mdtest measures rates of files",
            where=where,
            remedy="move the tables [[files]] to a campaign of their own",
        )


def _programs(folder: CampaignFolder) -> dict[str, str | None]:
    return {folder.engine: folder.program, MDTEST.name: folder.mdtest}


def _refuse(problems: Sequence[InputError]) -> None:
    """End the command with a line for each problem, if there is one."""
    for problem in problems[:-1]:
        complain(str(problem))
    for problem in problems[-1:]:
        raise problem


def _goal(adaptive: bool, regret: float | None, budget: str | None) -> AdaptiveGoal | None:
    """Read the options of an adaptive campaign; None if the campaign runs all runs."""
    options = {"--regret": regret, "--budget": budget}
    given = [name for name, value in options.items() if value is not None]
    if not adaptive:
        if given:
            raise InputError("needs --adaptive", where=given[0])
        return None
    if not given:
        raise InputError("give --regret or --budget, or both", where="--adaptive")
    return AdaptiveGoal(regret, None if budget is None else parse_duration(budget))


def _run(folder: CampaignFolder, database: Engine) -> None:
    click.echo(headline(folder), err=True)
    if folder.goal is not None:
        _run_adaptive(folder, folder.goal, database)
        return
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


def _run_adaptive(folder: CampaignFolder, goal: AdaptiveGoal, database: Engine) -> None:
    # Learning needs SciPy, which takes half a second to import.
    from predictor.planning.adaptive import EndedRun, run_adaptive  # noqa: PLC0415

    def report(ended: EndedRun) -> None:
        click.echo(ended_run_text(ended.runs, ended.run, ended.result, ended.notes, goal), err=True)

    try:
        notes = run_adaptive(folder, goal, database, report)
    except KeyboardInterrupt as interrupt:
        click.echo(f"continue with `{resume_command(folder)}`", err=True)
        raise click.Abort from interrupt
    click.echo(adaptive_text(notes, goal))
    failed = failures(folder)
    for line in failure_lines(failed):
        click.echo(line)
    sys.exit(1 if failed else 0)
