"""A campaign at work: IOPS in a process of its own, its results stored as they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Engine

from benchdb.campaigns.folder import CampaignFolder, Run, locked
from benchdb.campaigns.iops import write_inputs
from benchdb.campaigns.results import Result, result_of, store_results
from ioncast_errors import IoncastError

_POLL_SECONDS = 0.5
_STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Progress:
    """How far a campaign is.

    Attributes
    ----------
    runs, done, failed : int
        All runs, those that are done, those that failed.
    seconds_left : float or None
        Expected, from the runs that ended while watched; None before the first.
    """

    runs: int
    done: int
    failed: int
    seconds_left: float | None = None

    @property
    def left(self) -> int:
        """Runs that did not end yet."""
        return self.runs - self.done - self.failed


def progress_of(results: Sequence[Result | None]) -> Progress:
    """Count what the runs of a campaign came to."""
    states = [result.state for result in results if result]
    return Progress(len(results), states.count("done"), states.count("failed"))


def run_campaign(
    folder: CampaignFolder, database: Engine, report: Callable[[Progress], None]
) -> Progress:
    """Run what did not end yet, and store what did.

    Parameters
    ----------
    folder : CampaignFolder
        The campaign.
    database : Engine
        Where measurements go.
    report : callable
        Called with the progress whenever runs ended.

    Returns
    -------
    Progress
        When nothing runs any more.

    Raises
    ------
    InputError
        When the campaign is running already.
    IoncastError
        When it stopped by itself before the end.
    KeyboardInterrupt
        When it was interrupted; the run in flight is lost, nothing else.
    """
    with locked(folder) as lock:
        watch = _Watch(folder, database, report)
        watch.look()
        if watch.progress.left:
            write_inputs(folder)
            (folder.path / "stopped").unlink(missing_ok=True)
            _orchestrate(folder, lock, watch.look)
            watch.look()
    return watch.progress


def forget_failures(folder: CampaignFolder) -> int:
    """Put failed runs aside, with what they left, so that they are run again."""
    failed = [run for run in folder.runs if _failed(folder, run)]
    for run in failed:
        attempts = len(list(run.path.parent.glob(f"{run.path.name}.failed-*")))
        run.path.rename(f"{run.path}.failed-{attempts + 1}")
    return len(failed)


class _Watch:
    """Follows the runs that did not end when it was made."""

    def __init__(
        self, folder: CampaignFolder, database: Engine, report: Callable[[Progress], None]
    ) -> None:
        self._folder, self._database, self._report = folder, database, report
        self._open = folder.runs
        self._results: list[Result] = []
        self._since: float | None = None
        self._before = 0
        self.progress = Progress(len(self._open), 0, 0)

    def look(self) -> None:
        """Store what ended since the last look, and report it."""
        ended = [(run, result_of(self._folder, run)) for run in self._open]
        new = [(run, result) for run, result in ended if result]
        if new:
            store_results(self._database, self._folder, [run for run, _ in new])
            self._results += [result for _, result in new]
            self._open = [run for run, result in ended if not result]
        now = time.monotonic()
        if self._since is None:
            self._since, self._before = now, len(self._results)
        watched = len(self._results) - self._before
        counted = progress_of([*self._results, *([None] * len(self._open))])
        left = (now - self._since) / watched * counted.left if watched else None
        self.progress = Progress(counted.runs, counted.done, counted.failed, left)
        if new:
            self._report(self.progress)


def _orchestrate(folder: CampaignFolder, lock: int, look: Callable[[], None]) -> None:
    stopped = folder.path / "stopped"
    process = _start(folder, lock)
    try:
        while process.poll() is None:
            time.sleep(_POLL_SECONDS)
            look()
            if stopped.exists():
                _stop(process)
    except KeyboardInterrupt:
        _stop(process)
        look()
        raise
    finally:
        _stop(process)
    look()
    if stopped.exists():
        raise IoncastError(
            stopped.read_text(encoding="utf-8").strip(),
            where=str(folder.path),
            remedy=f"make room, then `ioncast campaign resume {folder.path}`",
        )
    if process.returncode:
        raise IoncastError(
            f"IOPS, the orchestrator, ended with an error: {last_error(folder)}",
            where=str(folder.path),
            remedy="see iops.log and iops.stderr there",
        )


def last_error(folder: CampaignFolder) -> str:
    """What IOPS complained of last, but for what only follows from it."""
    log = (folder.path / "iops.log").read_text(encoding="utf-8", errors="replace")
    lines = [line.partition("| ERROR |")[2].strip() for line in log.splitlines()]
    blocks = [
        " ".join(line for line in block if not line.startswith("wait_and_collect "))
        for is_error, block in groupby(lines, key=bool)
        if is_error
    ]
    return blocks[-1] if blocks else "nothing was said"


def _start(folder: CampaignFolder, lock: int) -> subprocess.Popen[bytes]:
    arguments = ["run", "iops.yaml", "--use-cache", "--no-log-terminal", "--log-file", "iops.log"]
    with (folder.path / "iops.stderr").open("wb") as errors:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "benchdb.campaigns._iops", str(os.getpid()), *arguments],
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[lock],
            start_new_session=True,
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the run in flight, then the orchestrator; jobs it submitted are cancelled."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failed(folder: CampaignFolder, run: Run) -> bool:
    result = result_of(folder, run)
    return result is not None and result.state == "failed"
