"""`ioncast campaign plan`: what a campaign would run, or what one should."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import humanize
from tabulate import tabulate

from benchdb.campaigns.commands import engine_option, find_engine, platform_option, show_left_out
from benchdb.campaigns.folder import obstacles
from benchdb.campaigns.platform import Platform, read_platform
from benchdb.files import write_file
from benchdb.options import database_option, format_option
from benchdb.store import reading
from ioncast_errors import InputError, IoncastError
from ior_configs import IorConfig
from ior_configs.campaign import Campaign, read_campaign, to_toml
from ior_configs.durations import parse_duration
from predictor.basis import read_basis
from predictor.matching import find
from predictor.needs import Need, Wanted, needs_of, wanted_of, within
from summario.extract import extract_phases
from summario.log import LogReader
from summario.phases import Phase

_REPETITIONS = 5
_SEED = 1


@click.command(
    epilog="""\b
Examples:
  ioncast campaign plan laptop --platform mysite.toml
  ioncast campaign plan --from-logs /var/log/darshan/2026 --platform mysite.toml
  ioncast campaign plan --from-logs /var/log/darshan/2026 --platform mysite.toml \\
      --budget 2h --output needed.toml
""",
)
@click.argument("source", metavar="[CAMPAIGN]", required=False)
@platform_option
@click.option(
    "--from-logs",
    "logs",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Plan for the applications whose Darshan logs are in DIR and below.",
)
@click.option("--budget", metavar="TIME", help="Plan what fits into it: 90m, 2h, 1d.")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=_REPETITIONS,
    show_default=True,
    help="Runs of each configuration with each number of I/O nodes, for --from-logs.",
)
@click.option(
    "--output", metavar="FILE.toml", type=click.Path(path_type=Path), help="Write the campaign."
)
@engine_option
@format_option
@database_option
def plan(
    source: str | None,
    platform_file: str,
    logs: Path | None,
    budget: str | None,
    repetitions: int,
    output: Path | None,
    engine: str | None,
    output_format: str,
    location: str | None,
) -> None:
    """Show what CAMPAIGN would run, or what the site's applications need.

    With --from-logs, the configurations that the applications' phases match and that are
    missing in the database, or known from a neighbour or too few runs only. First come those
    that take away most prediction error per minute: their share of the bytes times the error
    expected of what is known now. The plan can be written as a campaign file with --output.
    """
    if (source is None) == (logs is None):
        raise InputError("name a campaign or give --from-logs, one of the two")
    budget_s = None if budget is None else parse_duration(budget)
    platform = read_platform(platform_file)
    engine, _ = find_engine(platform, engine)
    if logs is None:
        campaign = read_campaign(
            source or "", nodes=platform.nodes, processes_per_node=platform.processes_per_node
        )
        wanted: Mapping[IorConfig, Wanted | None] = dict.fromkeys(campaign.configurations)
    else:
        campaign = Campaign(
            name=f"needed-{platform.system}",
            description=f"What the applications of {platform.system} need.",
            repetitions=repetitions,
            seed=_SEED,
            spread_s=None,
            configurations=(),
        )
        wanted = wanted_of(_jobs(logs), lambda tasks: _nodes(platform, tasks))
    possible = {
        config: asked for config, asked in wanted.items() if not obstacles(config, platform, engine)
    }
    if wanted and not possible:
        show_left_out(wanted, platform, engine)
        raise InputError(f"{platform.system} can run none of it with {engine}")
    needs = _needs(possible, platform, engine, campaign.repetitions, location)
    open_needs = needs if logs is None else [need for need in needs if need.missing]
    chosen = open_needs if budget_s is None else within(open_needs, budget_s)
    if output is not None:
        _write(output, campaign, chosen)
    total = sum(asked.bytes for asked in wanted.values() if asked)
    if output_format == "json":
        click.echo(json.dumps([_record(need, total) for need in chosen], indent=1))
    else:
        _show(chosen, platform, campaign.repetitions, total)
    if len(chosen) < len(open_needs):
        more = len(open_needs) - len(chosen)
        click.echo(f"ioncast: warning: {more} more do not fit into the budget", err=True)
    show_left_out(wanted, platform, engine)


def _needs(
    wanted: Mapping[IorConfig, Wanted | None],
    platform: Platform,
    engine: str,
    repetitions: int,
    location: str | None,
) -> list[Need]:
    with reading(location) as connection:
        basis = read_basis(connection, platform.system, wanted, engine)
    return needs_of(
        wanted,
        lambda config: find(config, basis.curves),
        io_nodes=platform.io_nodes,
        repetitions=repetitions,
    )


def _jobs(folder: Path) -> Iterator[Sequence[Phase]]:
    """Phases of every log in a folder and below; what cannot be used is said and left out."""
    logs = sorted(folder.rglob("*.darshan"))
    if not logs:
        raise InputError("no Darshan logs (*.darshan) in it", where=str(folder))
    usable = 0
    with (
        LogReader() as reader,
        click.progressbar(
            logs, label="reading logs", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as paths,
    ):
        for path in paths:
            try:
                phases = extract_phases(reader.read(path))
            except IoncastError as error:
                click.echo(f"ioncast: warning: {error}", err=True)
                continue
            usable += 1
            yield phases
    if not usable:
        raise InputError("none of its Darshan logs can be used", where=str(folder))


def _nodes(platform: Platform, tasks: int) -> int:
    return min(-(-tasks // platform.processes_per_node), platform.nodes)


def _write(path: Path, campaign: Campaign, needs: Sequence[Need]) -> None:
    if not needs:
        raise InputError("nothing is left to be measured: no campaign was written")
    comments = {
        need.config: f"{need.known}, expected error {need.error:.0%}"
        + (f", {need.wanted.jobs} jobs" if need.wanted else "")
        for need in needs
    }
    planned = replace(campaign, configurations=tuple(need.config for need in needs))
    write_file(path, to_toml(planned, comments))


def _record(need: Need, total: int) -> dict[str, Any]:
    return {
        "configuration": need.config.command_line(launcher=True),
        "tasks": need.config.tasks,
        "nodes": need.config.nodes,
        "bytes": need.wanted.bytes if need.wanted else None,
        "share_of_bytes": need.wanted.bytes / total if need.wanted and total else None,
        "jobs": need.wanted.jobs if need.wanted else None,
        "known": need.known,
        "expected_error": need.error,
        "missing_cells": need.missing,
        "seconds": need.seconds,
    }


def _show(needs: Sequence[Need], platform: Platform, repetitions: int, total: int) -> None:
    rows = [
        {
            "configuration": need.config.command_line(launcher=True),
            "nodes": need.config.nodes,
            **(
                {"bytes": f"{need.wanted.bytes / total:.1%}", "jobs": need.wanted.jobs}
                if need.wanted and total
                else {}
            ),
            "known": need.known,
            "error": f"{need.error:.0%}",
            "missing": f"{need.missing} of {len(platform.io_nodes)}",
            "time": humanize.naturaldelta(need.seconds),
        }
        for need in needs
    ]
    if not rows:
        click.echo("nothing is left to be measured")
        return
    click.echo(tabulate(rows, headers="keys", disable_numparse=True) + "\n")
    runs = len(needs) * len(platform.io_nodes) * repetitions
    seconds = humanize.naturaldelta(sum(need.seconds for need in needs))
    click.echo(
        f"{len(needs)} configurations × {len(platform.io_nodes)} numbers of I/O nodes"
        f" × {repetitions} repetitions = {runs} runs, about {seconds}"
    )
