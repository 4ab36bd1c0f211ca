"""A plan of benchmarks: choose the runs, show them as a table or JSON, write them as a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import humanize

from benchdb.campaigns.folder import obstacles
from benchdb.campaigns.platform_file import Platform
from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, to_toml
from predictor.model.system_model import SystemModel
from predictor.planning.needs import (
    ApplicationUse,
    Need,
    needs_of,
    start_seconds,
    wanted_of,
    within,
)
from summario.phases.values import Extraction
from summario.runs.hosts import NodeCount, job_nodes

REPETITIONS = 5
_SEED = 1


@dataclass(frozen=True)
class Plan:
    """The benchmarks to run on a platform; `chosen` are those of `open` that fit into the budget.

    The campaign is that of the user, without configurations if the plan is for applications.
    """

    platform: Platform
    campaign: Campaign
    engine: str
    wanted: Mapping[IorConfig, ApplicationUse | None]
    open: Sequence[Need]
    chosen: Sequence[Need]

    @property
    def bytes(self) -> int:
        """Bytes that all jobs move."""
        return sum(asked.bytes for asked in self.wanted.values() if asked)

    @property
    def left_out(self) -> dict[IorConfig, list[str]]:
        """Configurations that cannot be run, and the reasons."""
        reasons = {config: obstacles(config, self.platform, self.engine) for config in self.wanted}
        return {config: why for config, why in reasons.items() if why}

    @property
    def seconds(self) -> float:
        """Expected duration of the chosen runs."""
        return max(sum(need.seconds for need in self.chosen), self.campaign.spread_s or 0)


def wanted_on(platform: Platform, jobs: Iterable[Extraction]) -> dict[IorConfig, ApplicationUse]:
    """Add up the bytes of jobs by configuration, as the jobs would run on a platform.

    A job gets as many compute nodes as its log names, at most those of the platform. If the log
    does not name all, the job gets as few as the platform's processes per node allow.
    """

    def nodes(named: NodeCount | None, tasks: int) -> int:
        fewest = -(-tasks // platform.processes_per_node)
        used = job_nodes(None, named)
        wanted = fewest if used is None else max(fewest, min(used.number, tasks))
        return min(wanted, platform.nodes)

    return wanted_of(jobs, nodes)


def needed_campaign(platform: Platform, repetitions: int | None) -> Campaign:
    """Make the campaign for a site's applications, still without configurations."""
    return Campaign(
        name="needed",
        description=f"What the applications of {platform.system} need.",
        repetitions=repetitions or REPETITIONS,
        seed=_SEED,
        spread_s=None,
        configurations=(),
    )


def possible_on(
    platform: Platform, engine: str, wanted: Mapping[IorConfig, ApplicationUse | None]
) -> dict[IorConfig, ApplicationUse | None]:
    """Leave out the configurations that cannot be run on a platform."""
    return {
        config: asked for config, asked in wanted.items() if not obstacles(config, platform, engine)
    }


def make_plan(
    platform: Platform,
    campaign: Campaign,
    engine: str,
    wanted: Mapping[IorConfig, ApplicationUse | None],
    knowledge: SystemModel,
    earlier: Sequence[Curve] = (),
    *,
    budget_s: float | None,
    only_open: bool,
) -> Plan:
    """Choose the benchmarks to run; `earlier` are curves from before a change of the system."""
    needs = needs_of(
        possible_on(platform, engine, wanted),
        knowledge,
        io_nodes=platform.io_nodes,
        repetitions=campaign.repetitions,
        start_s=start_seconds(platform),
        earlier=earlier,
    )
    to_run = [need for need in needs if need.is_open or not only_open]
    chosen = to_run if budget_s is None else within(to_run, budget_s)
    return Plan(platform, campaign, engine, wanted, to_run, chosen)


def write_campaign(path: Path, plan: Plan) -> None:
    """Write the chosen configurations as a campaign file."""
    if not plan.chosen:
        raise InputError(f"{_nothing(plan)}: no campaign was written", where=str(path))
    comments = {
        need.config: f"{need.known}, expected error {need.error:.0%}"
        + (f", {counted(need.wanted.jobs, 'job')}" if need.wanted else "")
        for need in plan.chosen
    }
    configurations = tuple(need.config for need in plan.chosen)
    moved = {need.config: need.wanted.bytes for need in plan.chosen if need.wanted}
    campaign = replace(plan.campaign, configurations=configurations, application_bytes=moved)
    write_file(path, to_toml(campaign, comments))


def to_json(plan: Plan) -> dict[str, Any]:
    """Turn a plan into plain values for JSON."""
    return {
        "system": plan.platform.system,
        "engine": plan.engine,
        "io_nodes": list(plan.platform.io_nodes),
        "repetitions": plan.campaign.repetitions,
        "seconds": plan.seconds,
        "configurations": [_need_record(need, plan.bytes) for need in plan.chosen],
        "files": [
            {"configuration": config.command_line(launcher=True), "nodes": config.nodes}
            for config in plan.campaign.files
        ],
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


def to_text(plan: Plan) -> str:
    """Show a plan to people: a table and a summary."""
    if not plan.chosen:
        only_files = plan.campaign.files and not plan.wanted
        return "\n".join([*([] if only_files else [_nothing(plan)]), *_files_lines(plan)])
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
    legend = (
        "known: match with today's measurements; error: expected error of a prediction from them;"
        " a cell is the configuration with one number of I/O nodes"
    )
    more = len(plan.open) - len(plan.chosen)
    lines = [text_table(rows), "", legend, summary]
    if plan.bytes:
        share = sum(need.wanted.bytes for need in plan.chosen if need.wanted) / plan.bytes
        lines.append(f"these configurations stand for {share:.1%} of the bytes in the logs")
    beyond = [f"beyond the budget: {more} more"] if more else []
    return "\n".join([*lines, *beyond, *_files_lines(plan)])


def _files_lines(plan: Plan) -> list[str]:
    """A line about the runs of mdtest; how long they take is known only after they have run."""
    files = plan.campaign.files
    if not files:
        return []
    runs = len(files) * len(plan.platform.io_nodes) * plan.campaign.repetitions
    return [f"and with mdtest: configurations: {len(files)}; runs: {runs}, of unknown time"]


def _nothing(plan: Plan) -> str:
    """Say why there is nothing to run."""
    if plan.open:
        shortest = humanize.naturaldelta(min(need.seconds for need in plan.open))
        return f"nothing fits into the budget; the shortest needs {shortest}"
    if not plan.wanted:
        return "the logs contain no I/O phases"
    if len(plan.left_out) == len(plan.wanted):
        return f"{plan.platform.system} can run none of the configurations with {plan.engine}"
    return "all configurations that can be run here are measured well enough"
