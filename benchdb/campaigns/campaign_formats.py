"""A campaign's status, report and failures as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import humanize

from benchdb.campaigns.adaptive_notes import AdaptiveNotes
from benchdb.campaigns.collecting import RunResult
from benchdb.campaigns.folder import AdaptiveGoal, CampaignFolder, CampaignRun, obstacles
from benchdb.campaigns.platform_file import Platform
from benchdb.campaigns.progress_lines import progress_text
from benchdb.campaigns.standing import Status
from ioncast_base.text_tables import text_table
from ioncast_base.wording import in_words
from ior_configs import IorConfig, MdtestConfig

if TYPE_CHECKING:
    from benchdb.campaigns.report import ReportRow

Failures = Sequence[tuple[CampaignRun, RunResult]]

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


def status_to_json(folder: CampaignFolder, status: Status) -> dict[str, Any]:
    """The status of a campaign for programs."""
    progress, notes = status.progress, status.notes
    return {
        **_description(folder),
        "state": status.state,
        "running": status.is_running,
        "stopped": status.stopped,
        "runs": progress.runs,
        "done": progress.done,
        "failed": progress.failed,
        "left": progress.left,
        "errors": [
            {"error": pairs[0][1].reason, "runs": len(pairs), "log": str(_log(pairs[0][0]))}
            for pairs in _by_error(status.failed)
        ],
        "failures": [_failure(*pair) for pair in status.failed],
        **({} if folder.goal is None else {"adaptive": _adaptive_record(notes, folder.goal)}),
    }


def _adaptive_record(notes: AdaptiveNotes, goal: AdaptiveGoal) -> dict[str, Any]:
    return {
        "wanted_regret": goal.regret,
        "budget_seconds": goal.budget_s,
        "expected_regret": notes.regret,
        "elapsed_seconds": notes.elapsed_s,
        "ended": notes.ended,
    }


def status_to_text(folder: CampaignFolder, status: Status) -> str:
    """The status of a campaign for people."""
    progress = progress_text(status.progress)
    lines = [headline(folder), f"{status.state}: {progress}", *failure_lines(status.failed)]
    if folder.goal is not None:
        lines.append(adaptive_text(status.notes, folder.goal))
    if status.stopped:
        lines.append(f"stopped because {status.stopped}")
    if status.state not in {"running", "complete"}:
        again = " --retry-failed" if status.state == "failed" else ""
        lines.append(f"continue with `{resume_command(folder)}{again}`")
    return "\n".join(lines)


def ended_run_text(
    runs: int, run: CampaignRun, result: RunResult, notes: AdaptiveNotes, goal: AdaptiveGoal
) -> str:
    """One line about a run of an adaptive campaign that has ended, and the expectation then."""
    bandwidth = result.bandwidth_mib_s
    found = result.reason if bandwidth is None else f"{bandwidth:,.0f} MiB/s"
    cell = f"{run.cell.config.command_line(launcher=True)}, {in_words(run.cell.io_nodes)}"
    return f"run {runs}: {cell}: {found}; {_expectation(notes, goal)}"


def adaptive_text(notes: AdaptiveNotes, goal: AdaptiveGoal) -> str:
    """The state of an adaptive campaign in words."""
    ended = f"ended because {notes.ended}; " if notes.ended else ""
    return ended + _expectation(notes, goal)


def _expectation(notes: AdaptiveNotes, goal: AdaptiveGoal) -> str:
    wanted = "" if goal.regret is None else f" (wanted {goal.regret:.1%})"
    known = "not known yet" if notes.regret is None else f"{notes.regret:.1%}"
    words = [f"expected regret {known}{wanted}"]
    if goal.budget_s is not None:
        left_s = max(goal.budget_s - notes.elapsed_s, 0)
        words.append(f"{humanize.naturaldelta(left_s)} of the budget left")
    return ", ".join(words)


def report_to_json(folder: CampaignFolder, rows: Iterable[ReportRow]) -> dict[str, Any]:
    """The report of a campaign for programs; only one with runs of mdtest has `files`."""
    bandwidths, rates = _by_unit(rows)
    return {
        **_description(folder),
        "configurations": [row.to_record() for row in bandwidths],
        **({"files": [row.to_record() for row in rates]} if rates else {}),
    }


def report_to_text(folder: CampaignFolder, rows: Iterable[ReportRow]) -> str:
    """The report of a campaign for people: a table of bandwidths, and one of rates of files."""
    tables = (
        f"{text_table([row.cells() for row in some])}\n\n{some[0].unit} by number of I/O nodes:"
        " mean ±coefficient of variation (runs)"
        for some in _by_unit(rows)
        if some
    )
    return "\n\n".join([headline(folder), *tables])


def _by_unit(rows: Iterable[ReportRow]) -> tuple[list[ReportRow], list[ReportRow]]:
    """The rows of bandwidths, and those of rates of files."""
    found = list(rows)
    bandwidths = [row for row in found if row.unit == "MiB/s"]
    return bandwidths, [row for row in found if row not in bandwidths]


def failure_lines(failed: Failures) -> list[str]:
    """A line for each error with its number of runs and one of them; at most ten are shown."""
    errors = _by_error(failed)
    lines = []
    for pairs in errors[:_SHOWN]:
        run, result = pairs[0]
        times = f"{len(pairs)} times" if len(pairs) > 1 else "once"
        example = f"{run.cell.config.command_line(launcher=True)}, {in_words(run.cell.io_nodes)}"
        lines.append(
            f"failed {times}: {result.reason}; first: {example}, repetition {run.repetition};"
            f" see {_log(run)}"
        )
    if len(errors) > _SHOWN:
        more = len(errors) - _SHOWN
        lines.append(f"failed: {more} more errors, see `ioncast campaign status --format json`")
    return lines


def _by_error(failed: Failures) -> list[Failures]:
    """The failed runs of each error, the most frequent error first."""
    groups: dict[str | None, list[tuple[CampaignRun, RunResult]]] = {}
    for run, result in failed:
        groups.setdefault(result.error or result.reason, []).append((run, result))
    return sorted(groups.values(), key=len, reverse=True)


def _log(run: CampaignRun) -> Path:
    return run.path / "log"


def left_out_lines(
    configs: Iterable[IorConfig | MdtestConfig], platform: Platform, engine: str
) -> list[str]:
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


def _failure(run: CampaignRun, result: RunResult) -> dict[str, Any]:
    return {
        "configuration": run.cell.config.command_line(launcher=True),
        "io_nodes": run.cell.io_nodes,
        "repetition": run.repetition,
        "started": result.started,
        "reason": result.reason,
        "log": str(_log(run)),
    }
