"""The status of a campaign: its progress, its state and its failed runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from benchdb.campaigns.adaptive_notes import AdaptiveNotes, read_notes
from benchdb.campaigns.collecting import RunResult, result_of
from benchdb.campaigns.folder import CampaignFolder, CampaignRun, is_running


@dataclass(frozen=True)
class CampaignProgress:
    """The progress of a campaign.

    `seconds_left` follows from the runs that ended since the start of this process; None before the
    first one.
    """

    runs: int
    done: int
    failed: int
    seconds_left: float | None = None

    @property
    def left(self) -> int:
        """Number of runs that have not ended."""
        return self.runs - self.done - self.failed


def progress_of(results: Sequence[RunResult | None]) -> CampaignProgress:
    """Count the finished and failed runs of a campaign."""
    states = [result.state for result in results if result]
    return CampaignProgress(len(results), states.count("done"), states.count("failed"))


@dataclass(frozen=True)
class Status:
    """The status of a campaign: whether it is running, and why it stopped by itself."""

    progress: CampaignProgress
    is_running: bool
    stopped: str | None
    failed: tuple[tuple[CampaignRun, RunResult], ...]
    notes: AdaptiveNotes

    @property
    def state(self) -> str:
        """One of "running", "failed" (no run succeeded), "stopped", "not running", "complete"."""
        if self.is_running:
            return "running"
        if self.progress.failed and not self.progress.done:
            return "failed"
        if self.progress.left and self.notes.ended is None:
            return "stopped" if self.stopped else "not running"
        return "complete"


def status_of(folder: CampaignFolder) -> Status:
    """Read the status of a campaign from its folder."""
    results = [(run, result_of(folder, run)) for run in folder.runs]
    progress = progress_of([result for _, result in results])
    running = is_running(folder)
    return Status(
        progress=progress,
        is_running=running,
        stopped=_stopped(folder) if progress.left and not running else None,
        notes=read_notes(folder),
        failed=tuple(
            (run, result) for run, result in results if result and result.state == "failed"
        ),
    )


def _stopped(folder: CampaignFolder) -> str | None:
    with suppress(OSError):
        return (folder.path / "stopped").read_text(encoding="utf-8", errors="replace").strip()
    return None
