"""A campaign's status, report and failures as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from benchdb.campaigns.collecting import Result
from benchdb.campaigns.folder import CampaignFolder, Run, obstacles
from benchdb.campaigns.platform_file import Platform
from benchdb.campaigns.progress_lines import progress_text
from benchdb.campaigns.running import Progress
from ior_configs import IorConfig

if TYPE_CHECKING:
    from benchdb.campaigns.report import ReportRow

Failures = Sequence[tuple[Run, Result]]

_SHOWN = 10


def headline(folder: CampaignFolder) -> str:
    """One line: campaign, system, engine, folder and size."""
    configurations = len({run.cell.config for run in folder.runs})
    return (
        f"{folder.campaign.name} on {folder.platform.system} with {folder.engine}, in"
        f" {_shown_path(folder)}: configurations: {configurations}, numbers of I/O nodes:"
        f" {len(folder.platform.io_nodes)}, repetitions: {folder.campaign.repetitions}"
    )


def resume_command(folder: CampaignFolder) -> str:
    """The command line that resumes a campaign."""
    return f"ioncast campaign resume {shlex.quote(_shown_path(folder))}"


def status_to_json(
    folder: CampaignFolder, progress: Progress, failed: Failures, *, is_running: bool
) -> dict[str, Any]:
    """The status of a campaign for programs."""
    return {
        **_description(folder),
        "running": is_running,
        "runs": progress.runs,
        "done": progress.done,
        "failed": progress.failed,
        "left": progress.left,
        "failures": [_failure(*pair) for pair in failed],
    }


def status_to_text(
    folder: CampaignFolder, progress: Progress, failed: Failures, *, is_running: bool
) -> str:
    """The status of a campaign for people."""
    state = "running" if is_running else "not running" if progress.left else "complete"
    lines = [headline(folder), f"{state}: {progress_text(progress)}", *failure_lines(failed)]
    if progress.left and not is_running:
        lines.append(f"continue with `{resume_command(folder)}`")
    return "\n".join(lines)


def report_to_json(folder: CampaignFolder, rows: Iterable[ReportRow]) -> dict[str, Any]:
    """The report of a campaign for programs."""
    return {**_description(folder), "configurations": [asdict(row) for row in rows]}


def report_to_text(folder: CampaignFolder, rows: Iterable[ReportRow]) -> str:
    """The report of a campaign for people: a table with a row for each configuration."""
    table = tabulate([row.cells() for row in rows], headers="keys", disable_numparse=True)
    legend = "MiB/s by number of I/O nodes: mean ±coefficient of variation (runs)"
    return f"{headline(folder)}\n\n{table}\n\n{legend}"


def failure_lines(failed: Failures) -> list[str]:
    """A line for each failed run with its reason; only the first ten are shown."""
    lines = []
    for run, result in failed[:_SHOWN]:
        line = run.cell.config.command_line(launcher=True)
        place = f"{run.cell.io_nodes} I/O nodes, repetition {run.repetition}"
        lines.append(f"failed: {line}, {place}: {result.reason}; see {run.path / 'log'}")
    if len(failed) > _SHOWN:
        more = len(failed) - _SHOWN
        lines.append(f"failed: {more} more, see `ioncast campaign status --format json`")
    return lines


def left_out_lines(configs: Iterable[IorConfig], platform: Platform, engine: str) -> list[str]:
    """A line for each configuration that platform or engine cannot run; at most ten are named."""
    reasons = {config: obstacles(config, platform, engine) for config in configs}
    left_out = [config for config, why in reasons.items() if why]
    lines = [
        f"left out: {config.command_line(launcher=True)}: {'; '.join(reasons[config])}"
        for config in left_out[:_SHOWN]
    ]
    if len(left_out) > _SHOWN:
        lines.append(f"left out: {len(left_out) - _SHOWN} more")
    return lines


def _shown_path(folder: CampaignFolder) -> str:
    here = Path.cwd()
    return str(folder.path.relative_to(here) if folder.path.is_relative_to(here) else folder.path)


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
