"""Runs a campaign: starts IOPS in another process, and stores results as they come."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count, groupby
from pathlib import Path

from sqlalchemy import Engine

from benchdb.campaigns.collecting import (
    RunResult,
    failures,
    failures_in_a_row,
    result_of,
    stop_after_same_failures,
    store_results,
)
from benchdb.campaigns.folder import CampaignCell, CampaignFolder, CampaignRun, locked
from benchdb.campaigns.iops import CACHE, write_inputs
from benchdb.campaigns.iops_report import write_iops_report
from benchdb.campaigns.slurm_jobs import cancel_jobs, job_script, sbatch_command
from benchdb.campaigns.standing import CampaignProgress, progress_of
from ioncast_base import signals
from ioncast_base.errors import IoncastError
from ioncast_base.files import end_of_log, running_module

_POLL_SECONDS = 0.5
_STOP_SECONDS = 30.0


def run_campaign(
    folder: CampaignFolder, database: Engine, report: Callable[[CampaignProgress], None]
) -> CampaignProgress:
    """Run the runs of a campaign that have not ended, and store their measurements."""
    with locked(folder) as lock, signals.noted() as asked_to_stop:
        watch = _Watch(folder, database, report)
        watch.look()
        try:
            if watch.progress.left:
                write_inputs(folder, watch.open_cells)
                _stopped(folder).unlink(missing_ok=True)
                _orchestrate(folder, lock, watch, asked_to_stop)
        finally:
            write_iops_report(folder)
        if watch.progress.left:
            # The cache may have results of runs whose folders were removed later.
            (folder.path / CACHE).unlink(missing_ok=True)
    return watch.progress


@contextmanager
def one_by_one(folder: CampaignFolder) -> Iterator[Callable[[CampaignRun], RunResult]]:
    """Give a function that runs one run of a campaign, for an order that IOPS does not know.

    The function runs a run, unless it has ended, and returns its result; see `in_any_order`.
    """

    def run_one(run: CampaignRun) -> RunResult:
        begun = begin(run)
        begun.process.wait()
        return begun.result()

    with in_any_order(folder) as begin:
        yield run_one


@contextmanager
def in_any_order(folder: CampaignFolder) -> Iterator[Callable[[CampaignRun], BegunRun]]:
    """Give a function that begins a run of a campaign, for an order that IOPS does not know.

    The campaign stays locked until the end of the context; if it is already running, an InputError
    is raised. Runs that failed before run again. Runs that have not ended at the end of the context
    are stopped.
    """
    with locked(folder):
        forget_failures(folder)
        write_inputs(folder, folder.cells)
        _stopped(folder).unlink(missing_ok=True)
        begun: list[BegunRun] = []
        try:
            yield lambda run: _begin(folder, run, begun)
        finally:
            unended = [one for one in begun if not one.has_ended()]
            for one in unended:
                _stop(one.process)
            if unended:
                cancel_jobs(folder)
                _wait_for_the_last(folder)
            write_iops_report(folder)


@dataclass(frozen=True)
class BegunRun:
    """A run that was begun: its process, which waits for the job if the run is one of Slurm's."""

    folder: CampaignFolder
    run: CampaignRun
    process: subprocess.Popen[bytes]

    def has_ended(self) -> bool:
        """Whether the run has ended."""
        return self.process.poll() is not None

    def result(self) -> RunResult:
        """The result of a run that has ended.

        Raises
        ------
        IoncastError
            If no other run of the campaign may start.
        """
        result = result_of(self.folder, self.run)
        if result is not None and result.state == "failed":
            stop_after_same_failures(self.folder)
        if _stopped(self.folder).exists():
            raise IoncastError(_why_stopped(self.folder), where=str(self.folder.path))
        if result is None:
            said = end_of_log(_output_of_sbatch(self.folder, self.run)).strip().splitlines()
            because = f": {said[-1]}" if said else ""
            raise IoncastError(f"the run ended without a result{because}", where=str(self.run.path))
        return result


def _begin(folder: CampaignFolder, run: CampaignRun, begun: list[BegunRun]) -> BegunRun:
    script = folder.path / "cells" / f"{run.cell.name}.sh"
    if folder.platform.slurm is None:
        command, text = ["/bin/bash", str(script), str(run.repetition)], ""
    else:
        command, text = sbatch_command(folder), job_script(folder, run, script)
    output = _output_of_sbatch(folder, run)
    output.parent.mkdir(exist_ok=True)
    with output.open("wb") as errors, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603 - our own script, or sbatch
            command,
            cwd=output.parent,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    begun.append(BegunRun(folder, run, process))
    return begun[-1]


def _output_of_sbatch(folder: CampaignFolder, run: CampaignRun) -> Path:
    """The file with what sbatch complains about; it is empty for runs on this machine."""
    return folder.path / "iops" / f"{run.path.name}.stderr"


def cells_to_run(folder: CampaignFolder, *, retry_failed: bool) -> list[CampaignCell]:
    """Cells with runs that have not ended; if wanted, also those with failed runs."""
    again = [None, "failed"] if retry_failed else [None]
    results = ((run, result_of(folder, run)) for run in folder.runs)
    cells = (run.cell for run, result in results if (result and result.state) in again)
    return list(dict.fromkeys(cells))


def forget_failures(folder: CampaignFolder) -> None:
    """Rename the folders of failed runs, so that they are run again."""
    for run, _ in failures(folder):
        aside = (Path(f"{run.path}.failed-{attempt}") for attempt in count(1))
        run.path.rename(next(path for path in aside if not path.exists()))


class _Watch:
    """Follows the runs that have not ended, and stores their results."""

    def __init__(
        self, folder: CampaignFolder, database: Engine, report: Callable[[CampaignProgress], None]
    ) -> None:
        self._folder, self._database, self._report = folder, database, report
        self._open = folder.runs
        self._results: list[RunResult] = []
        self._since: float | None = None
        self._before = 0
        self.progress = CampaignProgress(len(self._open), 0, 0)

    @property
    def open_cells(self) -> list[CampaignCell]:
        """Cells with runs that have not ended."""
        return list(dict.fromkeys(run.cell for run in self._open))

    def look(self) -> bool:
        """Store the results of runs that ended since the last look, and report the progress."""
        ended = self._ended()
        store_results(self._database, self._folder, ended)
        results = [(run, result_of(self._folder, run)) for run in ended]
        new = {run: result for run, result in results if result}
        self._results += new.values()
        self._open = [run for run in self._open if run not in new]
        now = time.monotonic()
        if self._since is None:
            self._since, self._before = now, len(self._results)
        watched = len(self._results) - self._before
        counted = progress_of([*self._results, *([None] * len(self._open))])
        left = (now - self._since) / watched * counted.left if watched else None
        self.progress = replace(counted, seconds_left=left)
        if new:
            self._report(self.progress)
        return any(result.state == "failed" for result in new.values())

    def _ended(self) -> list[CampaignRun]:
        # Listing the folder once costs less than looking for each of thousands of runs.
        with suppress(FileNotFoundError):
            begun = {entry.name for entry in os.scandir(self._folder.path / "runs")}
            some = [run for run in self._open if run.path.name in begun]
            return [run for run in some if result_of(self._folder, run)]
        return []


def _orchestrate(
    folder: CampaignFolder, lock: int, watch: _Watch, asked_to_stop: Callable[[], bool]
) -> None:
    stopped = _stopped(folder)
    process = _start(folder, lock)
    try:
        while process.poll() is None and not (asked_to_stop() or stopped.exists()):
            time.sleep(_POLL_SECONDS)
            if watch.look():
                stop_after_same_failures(folder)
    finally:
        _stop(process)
    _wait_for_the_last(folder)
    watch.look()
    if asked_to_stop() and watch.progress.left:
        raise KeyboardInterrupt
    if stopped.exists() and watch.progress.left:
        again = " --retry-failed" if failures_in_a_row(folder) else ""
        raise IoncastError(
            _why_stopped(folder),
            where=str(folder.path),
            remedy="correct that, then continue with `ioncast campaign resume"
            f" {shlex.quote(str(folder.path))}{again}`",
        )
    if process.returncode:
        (folder.path / CACHE).unlink(missing_ok=True)
        raise IoncastError(
            f"IOPS, the orchestrator, stopped with an error: {last_error(folder)}",
            where=str(folder.path),
            remedy="see iops.log and iops.stderr in this folder",
        )


def _stopped(folder: CampaignFolder) -> Path:
    """The file that says why no other run of a campaign may start."""
    return folder.path / "stopped"


def _why_stopped(folder: CampaignFolder) -> str:
    return _stopped(folder).read_text(encoding="utf-8").strip()


def last_error(folder: CampaignFolder) -> str:
    """The last error in the log of IOPS."""
    lines = [line.partition("| ERROR |")[2].strip() for line in _lines(folder.path / "iops.log")]
    blocks = [
        " ".join(line for line in block if not line.startswith("wait_and_collect "))
        for is_error, block in groupby(lines, key=bool)
        if is_error
    ]
    said = blocks or _lines(folder.path / "iops.stderr")
    return said[-1] if said else f"see {folder.path / 'iops.log'}"


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _start(folder: CampaignFolder, lock: int) -> subprocess.Popen[bytes]:
    arguments = ["run", "iops.yaml", "--use-cache", "--no-log-terminal", "--log-file", "iops.log"]
    with (folder.path / "iops.stderr").open("wb") as errors:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            running_module("benchdb.campaigns._iops", str(os.getpid()), *arguments),
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[lock],
            start_new_session=True,
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the current run and the orchestrator, which cancels the jobs that it submitted."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_the_last(folder: CampaignFolder) -> None:
    """Wait until the current run has removed its files and switched its I/O nodes off."""
    with (folder.path / "running").open("ab") as file:
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.1)
