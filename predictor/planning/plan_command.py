"""`ioncast campaign plan`: show the runs of a campaign, or those that applications need."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from benchdb.campaigns.commands import engine_option, platform_option, show_left_out
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.campaigns.prerequisites import find_engine
from benchdb.measurements.curves import curves
from ioncast_base.command_options import WholeNumber, database_option, table_format_option, warn
from ioncast_base.errors import InputError, as_option
from ioncast_base.times import parse_duration
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, read_campaign
from predictor.commands import command_line
from predictor.curve.asking import read_knowledge
from predictor.planning.needs import ApplicationUse
from predictor.planning.plans import (
    REPETITIONS,
    Plan,
    make_plan,
    needed_campaign,
    possible_on,
    to_json,
    to_text,
    wanted_on,
    write_campaign,
)
from summario.extraction_options import extraction_options
from summario.phases.many import extract_all, find_runs
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Extraction
from summario.reading.log import PHASE_MODULES
from summario.reading.sources import logs_below
from summario.runs.hosts import HOST_MODULES


@click.command(
    epilog="""\b
Examples:
  ioncast campaign plan laptop --platform mysite.toml
  ioncast campaign plan --from-logs /var/log/darshan/2026 --platform mysite.toml
  ioncast campaign plan --from-logs /var/log/darshan/2026 --platform mysite.toml \\
      --budget 2h --min-share 0.01 --output needed.toml
""",
)
@click.argument("source", metavar="[CAMPAIGN]", required=False)
@platform_option
@click.option(
    "--from-logs",
    "logs",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Plan for the applications whose Darshan logs are in DIR or its subfolders.",
)
@click.option("--budget", metavar="TIME", help="Plan only runs that fit into TIME: 90m, 2h, 1d.")
@click.option(
    "--repetitions",
    type=WholeNumber(min=1),
    help="For --from-logs: runs of each configuration with each number of I/O nodes."
    f"  [default: {REPETITIONS}]",
)
@click.option(
    "--output", metavar="FILE.toml", type=click.Path(path_type=Path), help="Write a campaign file."
)
@engine_option
@extraction_options
@table_format_option
@database_option
def plan(
    source: str | None,
    platform_file: str,
    logs: Path | None,
    budget: str | None,
    repetitions: int | None,
    output: Path | None,
    engine: str | None,
    extraction: ExtractionSettings,
    output_format: str,
    location: str | None,
) -> None:
    """Show the runs of CAMPAIGN, or the runs that the site's applications need.

    With --from-logs, the plan has the configurations of the applications' phases for which the
    database has no measurements, too few, or only those of a neighbour. First come those that
    remove most prediction error per minute: their share of the bytes times the expected error of
    their present curve. --output writes the plan as a campaign file.
    """
    if (source is None) == (logs is None):
        raise InputError("name a campaign or give --from-logs, one of the two")
    if logs is None and repetitions is not None:
        raise InputError("a campaign has its own repetitions", where="--repetitions")
    if logs is None and extraction.changed:
        options = ", ".join(map(as_option, extraction.changed))
        raise InputError("a campaign has no logs", where=options, remedy="give --from-logs")
    budget_s = None if budget is None else parse_duration(budget)
    platform = read_platform(platform_file)
    engine, _ = find_engine(platform, engine)
    wanted: Mapping[IorConfig, ApplicationUse | None]
    if logs is None:
        campaign = read_campaign(
            source or "", nodes=platform.nodes, processes_per_node=platform.processes_per_node
        )
        wanted = dict.fromkeys(campaign.configurations)
    else:
        campaign = needed_campaign(platform, repetitions)
        wanted = wanted_on(platform, _jobs(logs, extraction))
        if not wanted and extraction.changed:
            options = ", ".join(map(as_option, extraction.changed))
            warn(f"{logs}: no phase is left with {options}, which the plan was given")
    found = plan_on(
        platform, campaign, engine, wanted, location, budget_s=budget_s, only_open=logs is not None
    )
    if output is not None:
        write_campaign(output, found)
    if output_format == "json":
        click.echo(json.dumps(to_json(found), indent=1))
    else:
        click.echo(to_text(found))
        show_left_out(wanted, platform, engine)


def plan_on(
    platform: Platform,
    campaign: Campaign,
    engine: str,
    wanted: Mapping[IorConfig, ApplicationUse | None],
    location: str | None,
    *,
    budget_s: float | None = None,
    only_open: bool = True,
) -> Plan:
    """Choose the benchmarks to run with the measurements of a database; print its warnings."""
    possible = possible_on(platform, engine, wanted)
    database = command_line(location)
    knowledge, _, warnings = read_knowledge(
        database, platform.system, possible, engine, may_be_empty=True
    )
    with database.transaction() as connection:
        before = curves(connection, platform.system, before_change=True)
    earlier = [curve for curve in before if curve.engine == engine]
    for warning in warnings:
        warn(warning)
    return make_plan(
        platform,
        campaign,
        engine,
        wanted,
        knowledge,
        earlier,
        budget_s=budget_s,
        only_open=only_open,
    )


def _jobs(folder: Path, extraction: ExtractionSettings) -> Iterator[Extraction]:
    """Read the phases of every log in a folder and below; warn of logs that cannot be used."""
    if not folder.is_dir():
        what = "this is not a folder" if folder.exists() else "this folder does not exist"
        raise InputError(what, where=str(folder), remedy="give the folder of the logs")
    runs = find_runs(list(logs_below(str(folder))), "steps")
    usable = 0
    with click.progressbar(
        extract_all(runs, extraction, (*PHASE_MODULES, *HOST_MODULES)),
        length=len(runs),
        label="reading logs",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as results:
        for run in results:
            for error in run.errors:
                warn(str(error))
            if run.result is not None:
                usable += 1
                yield run.result
    if not usable:
        raise InputError("no Darshan log in this folder can be used", where=str(folder))
