"""Following jobs: store in the watch's state which jobs run and which have ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from scheduler_plugin.collector.darshan_logs import CLOCKS_S
from scheduler_plugin.collector.job_runs import job_runs
from scheduler_plugin.collector.state import JobRun, WatchState
from scheduler_plugin.rounds import Failures
from scheduler_plugin.slurm import Job, SlurmAnswerError
from scheduler_plugin.slurm.licences import Licence

_LOG = logging.getLogger("ioncast.watch")
# If slurm.conf's MinJobAge is longer than three rounds, slurmctld still knows every job that ended
# since the last round. After a longer gap slurmdbd is asked as well.
_ROUNDS_OF_JOBS = 3
# Default of MinJobAge: the time for which slurmctld itself remembers ended jobs.
_REMEMBERED_S = 300.0
# Names of times in the state: the last round, and the begin of a gap that slurmdbd has to fill.
_FOLLOWED, _GAP = "followed", "gap"


class SlurmJobs(Protocol):
    """The part of `scheduler_plugin.slurm.Slurm` that the watch needs."""

    def jobs(self) -> list[Job]:
        """All jobs that slurmctld knows."""

    def licences(self) -> list[Licence]:
        """The cluster's licences."""

    def ended_jobs(self, since_s: int, until_s: int) -> list[Job]:
        """Jobs of slurmdbd that ended between two Unix times."""


class JobFollower:
    """Follows the jobs of one cluster.

    Parameters
    ----------
    failures : Failures
        Reports a slurmdbd that does not answer; jobs are followed all the same.
    """

    def __init__(
        self,
        state: WatchState,
        slurm: SlurmJobs,
        failures: Failures,
        *,
        licence: str,
        period_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._state = state
        self._slurm = slurm
        self._failures = failures
        self._licence = licence
        self._period_s = period_s
        self._clock = clock
        self._is_without_accounting = False
        # Slurm's last answer.
        self.jobs: list[Job] = []

    @property
    def asked_s(self) -> float:
        """Unix time of the last answer of Slurm; runs that started later are unknown."""
        return self._state.moment(_FOLLOWED) or 0.0

    def follow(self) -> None:
        """Ask Slurm for its jobs and store their runs."""
        now_s = self._clock()
        self.jobs = self._slurm.jobs()
        runs = self._runs(self.jobs, now_s)
        with self._state.transaction():
            before_s = self._state.moment(_FOLLOWED)
            if before_s is not None and now_s - before_s > _ROUNDS_OF_JOBS * self._period_s:
                self._state.remember(_GAP, min(before_s, self._state.moment(_GAP) or before_s))
            self._state.remember(_FOLLOWED, now_s)
            self._state.follow(runs)
        self._failures.attempt("reading jobs of slurmdbd", lambda: self._fill_gap(now_s))
        listed = {(run.id, run.started_s) for run in runs}
        running = self._state.running()
        with self._state.transaction():
            # slurmctld has forgotten these runs, or their job was put back into the queue.
            gone = [run for run in running if (run.id, run.started_s) not in listed]
            self._state.fill_in([replace(run, ended_s=now_s) for run in gone])

    def _runs(self, jobs: list[Job], now_s: float) -> list[JobRun]:
        """The runs of slurmctld's jobs, without jobs that complete with an unknown start.

        While a job that was put back into the queue completes, Slurm gives the present time as its
        start. Each round would find another run.
        """
        completing = {job.het_job_id or job.id for job in jobs if job.state == "COMPLETING"}
        known = {(run.id, run.started_s) for run in self._state.running()}
        return [
            run
            for run in job_runs(jobs, self._licence, now_s)
            if run.id not in completing or (run.id, run.started_s) in known
        ]

    def _fill_gap(self, now_s: float) -> None:
        """Ask slurmdbd for jobs that started and ended while no watch ran."""
        since_s = self._state.moment(_GAP)
        if since_s is None:
            return
        try:
            jobs = self._slurm.ended_jobs(int(since_s - CLOCKS_S), int(now_s) + 1)
        except SlurmAnswerError as error:
            # There is no slurmdbd, or slurmrestd does not offer it. It matters only for a gap that
            # is longer than slurmctld's memory.
            is_too_long = now_s - since_s > _REMEMBERED_S
            if is_too_long and not self._is_without_accounting:
                self._is_without_accounting = True
                _LOG.warning(
                    "no watch ran since %s, and jobs that slurmctld has forgotten since then are"
                    " unknown, because slurmdbd cannot be asked: %s",
                    datetime.fromtimestamp(since_s).isoformat(" ", "seconds"),
                    error,
                )
            jobs = []
        with self._state.transaction():
            self._state.fill_in(job_runs(jobs, self._licence, now_s, are_accounted=True))
            self._state.remember(_GAP, None)
