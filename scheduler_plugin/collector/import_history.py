"""The import of a site's past: jobs from slurmdbd, and the Darshan logs that they left."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol, TypeVar

import humanize

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.job_runs import job_runs
from scheduler_plugin.collector.log_queue import note_logs
from scheduler_plugin.collector.sending import LogSender, counted, summary
from scheduler_plugin.collector.state import JobRun, WatchState
from scheduler_plugin.collector.stored_logs import StoredLogs
from scheduler_plugin.service_client import ServiceRefusedError, ServiceUnreachableError
from scheduler_plugin.slurm import Job, SlurmUnreachableError

_LOG = logging.getLogger("ioncast.import")
_Result = TypeVar("_Result")
_HOUR_S, _DAY_S = 3600, 86_400
# slurmdbd is asked for longer spans while they have few jobs: a job is 10 KB of its answer.
_MANY_JOBS = 2000
_RUNS_AT_ONCE = 50
_BETWEEN_LINES_S = 10.0
# A restart or an upgrade of Slurm or of the service takes less.
_PATIENCE_S = 600.0
_PAUSE_S = 2.0
_TOO_MANY_REQUESTS = 429


class Accounting(Protocol):
    """The part of `scheduler_plugin.slurm.Slurm` that the import needs."""

    def accounted_jobs(self, since_s: int, until_s: int) -> list[Job]:
        """Jobs of slurmdbd that waited or ran between two Unix times."""


class HistoryImport:
    """The import of jobs that ended in a span of time.

    First all jobs of the span are read into the state. A log belongs to the nearest run of its job
    id, so all runs must be known before the first log is sent. Then the logs of the newest runs are
    sent first, because newer runs count more in decisions. If the import is killed, the next one
    reads the jobs again, and sends only what was not sent.

    Parameters
    ----------
    state : WatchState
        The import's own state; not the watch's, which runs meanwhile.
    clock, sleep : callable
        Return the Unix time, and wait some seconds.
    """

    def __init__(
        self,
        state: WatchState,
        slurm: Accounting,
        logs: LogFolder | StoredLogs,
        sender: LogSender,
        count: Counter[str],
        *,
        licence: str,
        clock: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._state = state
        self._slurm = slurm
        self._logs = logs
        self._sender = sender
        self._count = count
        self._licence = licence
        self._clock = clock
        self._sleep = sleep
        self._told_s = clock()

    def run(self, since_s: int, until_s: int) -> bool:
        """Import the jobs with `since_s` <= end < `until_s`, in Unix times."""
        # No log is sent yet. The service only says whether it knows the token and the system.
        self._sender.send(-math.inf)
        self._read_jobs(since_s, until_s)
        self._state.make_due(self._clock())
        are_readable = self._send_logs(since_s, until_s)
        return self._send_rest() and are_readable

    def sum_up(self) -> None:
        """Log the numbers of jobs and logs."""
        _LOG.info("%s", self._summary())

    def _summary(self) -> str:
        return summary(self._count, self._sender.sent, self._state.waiting())

    def _read_jobs(self, since_s: int, until_s: int) -> None:
        begin_s, span_s = since_s, _HOUR_S
        while begin_s < until_s:
            end_s = min(begin_s + span_s, until_s)
            jobs = self._patiently("asking slurmdbd", _asked(self._slurm, begin_s, end_s))
            runs = job_runs(jobs, self._licence, self._clock(), are_accounted=True)
            with self._state.transaction():
                self._state.fill_in(runs)
            self._tell(f"jobs of slurmdbd are known until {_in_local_time(end_s)}")
            begin_s = end_s
            span_s = min(2 * span_s, _DAY_S) if len(jobs) < _MANY_JOBS else _HOUR_S
        ended = self._state.count_ended(since_s, until_s)
        _LOG.info(
            "slurmdbd knows %s that ended from %s to %s",
            counted(ended, "job"),
            _in_local_time(since_s),
            _in_local_time(until_s),
        )
        if not ended:
            _LOG.warning("with PrivateData=jobs the token's user must be an operator of Slurm")

    def _send_logs(self, since_s: int, until_s: int) -> bool:
        """Look for the logs of all runs and send them; return whether all could be read."""
        total, began_s = self._state.count_ended(since_s, until_s), self._clock()
        are_readable, last = True, None
        while runs := self._state.newest_ended(since_s, until_s, last, _RUNS_AT_ONCE):
            are_readable &= self._look_for(runs, until_s)
            are_readable &= self._send()
            last = runs[-1]
            left = total - self._count["done"]
            left_s = (self._clock() - began_s) / max(self._count["done"], 1) * left
            self._tell(
                f"{self._summary()}; {counted(left, 'job')} left,"
                f" about {humanize.naturaldelta(left_s)}"
            )
        return are_readable

    def _look_for(self, runs: list[JobRun], until_s: int) -> bool:
        """Note the logs of some runs; return whether all folders could be read."""
        are_readable = True
        # One transaction, because each waits for the disk.
        with self._state.transaction():
            for run in runs:
                self._count["done"] += 1
                try:
                    logs = note_logs(
                        self._state,
                        self._logs,
                        run,
                        known_s=until_s,
                        wait_s=0.0,
                        now_s=self._clock(),
                    )
                except InputError as error:
                    are_readable = False
                    _LOG.error("job %d: looking for logs fails: %s", run.id, error)
                else:
                    self._count["without"] += logs == 0
        return are_readable

    def _send(self) -> bool:
        """Send all logs that are due; return whether none was put off."""
        return self._patiently("sending logs", lambda: self._sender.send(math.inf))

    def _send_rest(self) -> bool:
        """Send the logs that were put off; return whether all could be read."""
        while self._state.waiting():
            self._state.make_due(self._clock())
            if not self._send():
                return False
        return True

    def _patiently(self, name: str, step: Callable[[], _Result]) -> _Result:
        """Do a step, and try it again while Slurm or the service does not answer."""
        give_up_s, sent = self._clock() + _PATIENCE_S, -1
        while True:
            try:
                return step()
            except IoncastError as error:
                if sent != (sent := self._count.total()):
                    give_up_s = self._clock() + _PATIENCE_S
                if not _is_temporary(error) or self._clock() > give_up_s:
                    raise
                self._tell(f"{name} fails, next attempt soon: {error}")
            self._sleep(_PAUSE_S)
            while self._sender.is_paused(self._clock()):
                self._sleep(_PAUSE_S)

    def _tell(self, line: str) -> None:
        """Log a line, unless another one was logged some seconds ago."""
        if self._clock() - self._told_s >= _BETWEEN_LINES_S:
            self._told_s = self._clock()
            _LOG.info("%s", line)


def _asked(slurm: Accounting, since_s: int, until_s: int) -> Callable[[], list[Job]]:
    return lambda: slurm.accounted_jobs(since_s, until_s)


def _is_temporary(error: IoncastError) -> bool:
    """Whether the same request may succeed some minutes later."""
    if isinstance(error, ServiceRefusedError):
        return error.status == _TOO_MANY_REQUESTS or error.status >= 500
    return isinstance(error, (SlurmUnreachableError, ServiceUnreachableError))


def _in_local_time(moment_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment_s))
