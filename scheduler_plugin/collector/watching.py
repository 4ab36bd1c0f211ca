"""The watch's rounds: follow jobs, look for logs of ended jobs, send these logs."""

from __future__ import annotations

import logging
import math
from collections import Counter

from ioncast_base.errors import InputError
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.exporting import Exporter
from scheduler_plugin.collector.job_poller import JobFollower, SlurmJobs
from scheduler_plugin.collector.limits_file import LimitsFile
from scheduler_plugin.collector.log_queue import note_logs
from scheduler_plugin.collector.name_history import NameHistory
from scheduler_plugin.collector.queue_report import does_arbiter_work, queue_report
from scheduler_plugin.collector.sending import LogSender, Receiver, counted, summary
from scheduler_plugin.collector.state import JobRun, WatchState
from scheduler_plugin.collector.steady_time import SteadyTime
from scheduler_plugin.rounds import Failures

_LOG = logging.getLogger("ioncast.watch")
_KEPT_S = 28 * 86_400.0
_BETWEEN_SUMMARIES_S = 3600.0
# Runs are removed once an hour, and at most 1 % of them: at its start the watch cannot know
# whether the clock is right.
_BETWEEN_PRUNINGS_S = 3600.0
# The name of a time in the state: when runs were removed last.
_PRUNED = "pruned"
_BETWEEN_LIMITS_S = 60.0
# Slurm may tell a later start than that of the hooks, when the compute nodes were powered up.
_POWERING_UP_S = 3600.0
_BETWEEN_REPORTS_S = 300.0


class Watch:
    """The watch of one cluster.

    Parameters
    ----------
    period_s, wait_s : float
        Seconds between two rounds, and after a job's end until no more logs of it are expected.
    heartbeat : str
        The file of the arbiter's heartbeat.
    name_history : NameHistory or None
        The names of the I/O nodes of jobs; None if the site does not name them.
    is_dry : bool
        Whether the receiver sends nothing; then the log says "would be sent".
    """

    def __init__(
        self,
        state: WatchState,
        slurm: SlurmJobs,
        service: Receiver,
        logs: LogFolder,
        *,
        system: str,
        licence: str,
        heartbeat: str,
        period_s: float,
        wait_s: float,
        limits: LimitsFile | None = None,
        name_history: NameHistory | None = None,
        exporter: Exporter | None = None,
        is_dry: bool = False,
        clock: SteadyTime | None = None,
    ) -> None:
        self._state = state
        self._slurm = slurm
        self._service = service
        self._system = system
        self._licence = licence
        self._heartbeat = heartbeat
        self._logs = logs
        self._wait_s = wait_s
        self._limits = limits
        self._name_history = name_history
        self._exporter = exporter
        self._clock = clock = clock or SteadyTime()
        self._failures, self._reporting = Failures(_LOG), Failures(_LOG)
        self._counted: Counter[str] = Counter()
        self._summed_up: Counter[str] = Counter()
        self._worked_s: float | None = None
        self._follower = JobFollower(
            state, slurm, self._failures, licence=licence, period_s=period_s, clock=clock
        )
        self._sender = LogSender(
            state,
            service,
            self._counted,
            system=system,
            period_s=period_s,
            is_dry=is_dry,
            clock=clock,
        )
        self._summed_up_s = clock()
        self._limits_s = 0.0
        self._reported_s = 0.0

    def round(self, sending_s: float) -> bool:
        """Do each step once."""
        has_worked = self._steps(sending_s)
        if has_worked:
            self._worked_s = self._clock.wall_s()
        if self._exporter is not None:
            counted = self._summed_up + self._counted
            waiting = self._state.waiting()
            self._exporter.write(counted, waiting, self._failures, self._worked_s)
        return has_worked

    def _steps(self, sending_s: float) -> bool:
        is_known = self._failures.attempt("following jobs", self._follower.follow)
        done = [
            is_known,
            # Before their logs are sent.
            self._failures.attempt("reading names of I/O nodes", self._note_names),
            self._failures.attempt("looking for logs", self._look),
        ]
        now_s = self._clock()
        # The plugin compares the time in the file with its own clock.
        limits, wall_s = self._limits, self._clock.wall_s()
        if limits is not None and abs(wall_s - self._limits_s) > _BETWEEN_LIMITS_S:
            self._limits_s = wall_s
            done.append(
                self._failures.attempt("reading Slurm's limits", lambda: limits.renew(wall_s))
            )
        if not self._sender.is_paused(now_s):
            until_s = now_s + sending_s
            done.append(self._failures.attempt("sending logs", lambda: self._sender.send(until_s)))
        if (
            is_known
            and not self._sender.is_paused(self._clock())
            and abs(wall_s - self._reported_s) > _BETWEEN_REPORTS_S
        ):
            self._reported_s = wall_s
            # Only the overview needs it, so it decides nothing about the round.
            self._reporting.attempt("reporting the queue", self._report)
        self._prune(now_s)
        if now_s - self._summed_up_s > _BETWEEN_SUMMARIES_S:
            self.sum_up()
        return all(done) and not self._failures

    def sum_up(self) -> None:
        """Log the numbers of jobs and logs since the last summary."""
        _LOG.info("%s", summary(self._counted, self._sender.sent, self._state.waiting()))
        self._summed_up += self._counted
        self._counted.clear()
        self._summed_up_s = self._clock()

    def _report(self) -> None:
        """Tell the service the queue; if that fails, the next report is the next try."""
        report = queue_report(
            self._system,
            self._follower.jobs,
            self._slurm.licences(),
            licence=self._licence,
            arbiter_works=does_arbiter_work(self._heartbeat),
        )
        self._service.send_queue(vars(report))

    def _note_names(self) -> None:
        """Note the names of the I/O nodes of running and ended jobs."""
        unnamed = self._state.unnamed() if self._name_history is not None else []
        if self._name_history is None or not unnamed:
            return
        self._name_history.refresh()
        with self._state.transaction():
            for run in unnamed:
                before_s, _ = self._state.neighbours(run)
                since_s = max(run.started_s - _POWERING_UP_S, before_s or 0.0)
                until_s = math.inf if run.ended_s is None else run.ended_s
                names = self._name_history.names_of(run.id, since_s, until_s)
                # Others are those of an earlier job with this id.
                if 0 < len(names) <= (run.io_nodes or 0):
                    self._state.note_names(run, names)

    def _look(self) -> None:
        """Find the logs of ended jobs; an unreadable folder does not stop the other jobs."""
        self._logs.refresh()
        failure = None
        asked_s = self._follower.asked_s
        for run in self._state.ended():
            try:
                self._look_for(run, asked_s)
            except InputError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _look_for(self, run: JobRun, known_s: float) -> None:
        with self._state.transaction():
            logs = note_logs(
                self._state,
                self._logs,
                run,
                known_s=known_s,
                wait_s=self._wait_s,
                now_s=self._clock(),
            )
        if logs is not None:
            self._counted["done"] += 1
        if logs == 0:
            self._counted["without"] += 1
            _LOG.debug("job %d of %s: no log", run.id, run.user)

    def _prune(self, now_s: float) -> None:
        pruned_s = self._state.moment(_PRUNED) or 0.0
        if abs(now_s - pruned_s) < _BETWEEN_PRUNINGS_S or not self._clock.may_forget:
            return
        with self._state.transaction():
            unsent = self._state.prune(now_s - _KEPT_S)
            self._state.remember(_PRUNED, now_s)
        if unsent:
            _LOG.warning(
                "%s could not be sent for four weeks and will not be sent", counted(unsent, "log")
            )
