"""`ioncast campaign plan`: what a campaign would run, or what one should."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import humanize
from tabulate import tabulate

from benchdb.campaigns.commands import engine_option, find_engine, platform_option, show_left_out
from benchdb.campaigns.folder import obstacles
from benchdb.campaigns.platform_file import Platform, read_platform
from ioncast_base.command_options import database_option, format_option
from ioncast_base.durations import parse_duration
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.files import write_file
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, read_campaign, to_toml
from predictor.commands import command_line
from predictor.composition.asking import read_and_fit
from predictor.planning.needs import Need, Wanted, needs_of, wanted_of, within
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import LogReader

_REPETITIONS = 5
_SEED = 1
# What a run takes beside its I/O, in seconds: a process to start, or a job to be seen to end.
_LOCAL_START_S, _SLURM_START_S = 1.0, 30.0


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
    help="For --from-logs: runs of each configuration with each number of I/O nodes."
    f"  [default: {_REPETITIONS}]",
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
    repetitions: int | None,
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
    if logs is None and repetitions is not None:
        raise InputError("a campaign says its repetitions itself", where="--repetitions")
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
            name="needed",
            description=f"What the applications of {platform.system} need.",
            repetitions=repetitions or _REPETITIONS,
            seed=_SEED,
            spread_s=None,
            configurations=(),
        )
        wanted = wanted_of(_jobs(logs), lambda tasks: _nodes(platform, tasks))
    possible = {
        config: asked for config, asked in wanted.items() if not obstacles(config, platform, engine)
    }
    needs = _needs(possible, platform, engine, campaign.repetitions, location)
    open_needs = needs if logs is None else [need for need in needs if need.is_open]
    chosen = open_needs if budget_s is None else within(open_needs, budget_s)
    plan_ = _Plan(platform, campaign, engine, wanted, open_needs, chosen)
    if output is not None:
        _write(output, plan_)
    click.echo(json.dumps(_record(plan_), indent=1) if output_format == "json" else _text(plan_))
    if output_format != "json":
        show_left_out(wanted, platform, engine)


@dataclass(frozen=True)
class _Plan:
    """What was asked for, what of it is open, and what of that was chosen."""

    platform: Platform
    campaign: Campaign
    engine: str
    wanted: Mapping[IorConfig, Wanted | None]
    open: Sequence[Need]
    chosen: Sequence[Need]

    @property
    def bytes(self) -> int:
        """That all jobs move."""
        return sum(asked.bytes for asked in self.wanted.values() if asked)

    @property
    def left_out(self) -> dict[IorConfig, list[str]]:
        """What cannot be run, and why."""
        reasons = {config: obstacles(config, self.platform, self.engine) for config in self.wanted}
        return {config: why for config, why in reasons.items() if why}

    @property
    def seconds(self) -> float:
        """That the chosen runs are expected to take."""
        return max(sum(need.seconds for need in self.chosen), self.campaign.spread_s or 0)


def _needs(
    wanted: Mapping[IorConfig, Wanted | None],
    platform: Platform,
    engine: str,
    repetitions: int,
    location: str | None,
) -> list[Need]:
    basis, warnings = read_and_fit(command_line(location), platform.system, wanted, engine)
    for warning in warnings:
        click.echo(f"ioncast: warning: {warning}", err=True)
    return needs_of(
        wanted,
        basis.knowledge,
        io_nodes=platform.io_nodes,
        repetitions=repetitions,
        start_s=_LOCAL_START_S if platform.slurm is None else _SLURM_START_S,
    )


def _jobs(folder: Path) -> Iterator[Sequence[Phase]]:
    """Phases of every log in a folder and below; what cannot be used is said and left out."""
    if not folder.is_dir():
        raise InputError("there is no such folder", where=str(folder))
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


def _write(path: Path, plan: _Plan) -> None:
    if not plan.chosen:
        raise InputError(f"{_nothing(plan)}: no campaign was written", where=str(path))
    comments = {
        need.config: f"{need.known}, expected error {need.error:.0%}"
        + (f", {need.wanted.jobs} jobs" if need.wanted else "")
        for need in plan.chosen
    }
    configurations = tuple(need.config for need in plan.chosen)
    write_file(path, to_toml(replace(plan.campaign, configurations=configurations), comments))


def _record(plan: _Plan) -> dict[str, Any]:
    return {
        "system": plan.platform.system,
        "engine": plan.engine,
        "io_nodes": list(plan.platform.io_nodes),
        "repetitions": plan.campaign.repetitions,
        "seconds": plan.seconds,
        "configurations": [_need_record(need, plan.bytes) for need in plan.chosen],
        "over_budget": len(plan.open) - len(plan.chosen),
        "left_out": [
            {"configuration": config.command_line(launcher=True), "reasons": why}
            for config, why in plan.left_out.items()
        ],
    }


def _need_record(need: Need, total: int) -> dict[str, Any]:
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


def _text(plan: _Plan) -> str:
    if not plan.chosen:
        return _nothing(plan)
    cells = len(plan.platform.io_nodes)
    rows = [
        {
            "configuration": need.config.command_line(launcher=True),
            "nodes": need.config.nodes,
            **(
                {"bytes": f"{need.wanted.bytes / plan.bytes:.1%}", "jobs": need.wanted.jobs}
                if need.wanted and plan.bytes
                else {}
            ),
            "known": need.known,
            "error": f"{need.error:.0%}",
            "cells missing": f"{need.missing} of {cells}",
            "time": humanize.naturaldelta(need.seconds),
        }
        for need in plan.chosen
    ]
    runs = len(rows) * cells * plan.campaign.repetitions
    summary = (
        f"configurations: {len(rows)}; numbers of I/O nodes: {cells};"
        f" repetitions: {plan.campaign.repetitions}; runs: {runs},"
        f" about {humanize.naturaldelta(plan.seconds)}"
    )
    legend = "error: expected of the curve as it is known now; a cell is one number of I/O nodes"
    more = len(plan.open) - len(plan.chosen)
    lines = [tabulate(rows, headers="keys", disable_numparse=True), "", legend, summary]
    if plan.bytes:
        share = sum(need.wanted.bytes for need in plan.chosen if need.wanted) / plan.bytes
        lines.append(f"they stand for {share:.1%} of the bytes in the logs")
    return "\n".join([*lines, *([f"over the budget: {more} more"] if more else [])])


def _nothing(plan: _Plan) -> str:
    """Why there is nothing to run."""
    if plan.open:
        shortest = humanize.naturaldelta(min(need.seconds for need in plan.open))
        return f"nothing fits into the budget; the shortest needs {shortest}"
    if not plan.wanted:
        return "the logs hold no I/O phases"
    if len(plan.left_out) == len(plan.wanted):
        return f"{plan.platform.system} can run none of it with {plan.engine}"
    return "what can be run here is measured well enough"
