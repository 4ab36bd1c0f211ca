"""What the watch does in each round: it follows jobs, finds their logs and sends them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.service_client import RunOf, ServiceRefusedError
from scheduler_plugin.slurm import Job, SlurmAnswerError
from scheduler_plugin.visible_text import visible
from scheduler_plugin.watch.darshan_logs import LogFolder, open_log
from scheduler_plugin.watch.job_runs import job_runs
from scheduler_plugin.watch.state import Delivery, JobRun, WatchState

_LOG = logging.getLogger("ioncast.watch")
# What the service will say again to the same log: it cannot be used, or contradicts what is known.
_FINAL = frozenset([400, 409, 413, 415, 422])
_LONGEST_PAUSE_S = 60.0
_LONGEST_WAIT_S = 600.0
_KEPT_S = 28 * 86_400.0
_BETWEEN_SUMMARIES_S = 3600.0
# How far clocks may be apart.
_CLOCKS_S = 120.0
# slurm.conf's MinJobAge should be longer than so many rounds: then no job is missed.
_ROUNDS_OF_JOBS = 3
# MinJobAge where nobody sets it: so long slurmctld itself tells of jobs that ended.
_REMEMBERED_S = 300.0
_FOLLOWED, _GAP = "followed", "gap"


class SlurmJobs(Protocol):
    """What of `scheduler_plugin.slurm.Slurm` is needed."""

    def jobs(self) -> list[Job]:
        """All that slurmctld knows."""

    def ended_jobs(self, since_s: int, until_s: int) -> list[Job]:
        """Those that slurmdbd knows to have ended within a time."""


class Receiver(Protocol):
    """What of `scheduler_plugin.service_client.Ioncast` is needed."""

    def measured_systems(self) -> list[str]:
        """Those that decisions can be made for."""

    def send_trace(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Put a run into the history."""

    def send_outcome(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Report what a job got."""


class Watch:
    """Follows the jobs of one cluster.

    Parameters
    ----------
    state : WatchState
        What is remembered.
    slurm : SlurmJobs
        Where jobs are.
    service : Receiver
        Where logs go.
    logs : LogFolder
        Where logs come from.
    system, licence : str
        The machine in ioncast, and what an I/O node is to Slurm.
    period_s, wait_s : float
        Between rounds; how long after its end logs of a job may come.
    is_dry : bool
        Whether the receiver sends nothing, so that nothing is said to be sent.
    clock : callable
        Gives the Unix time.
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
        period_s: float,
        wait_s: float,
        is_dry: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._slurm = slurm
        self._service = service
        self._logs = logs
        self._system = system
        self._licence = licence
        self._period_s = period_s
        self._wait_s = wait_s
        self._sent = "would be sent" if is_dry else "sent"
        self._clock = clock
        self._failing: dict[str, str] = {}
        self._counted: Counter[str] = Counter()
        self._summed_up_s = clock()
        self._pruned_s = 0.0
        self._silences = 0
        self._silent_until_s = 0.0
        self._is_without_accounting = False
        self._is_system_checked = False
        self._warnings: set[str] = set()

    def round(self, sending_s: float) -> bool:
        """Do once what is to be done.

        Parameters
        ----------
        sending_s : float
            How long to go on with sending; the rest is for the next round.

        Returns
        -------
        bool
            Whether nothing failed.
        """
        done = [
            self._attempt("jobs are not followed", self._follow),
            self._attempt("logs are not looked for", self._look),
        ]
        now_s = self._clock()
        if now_s >= self._silent_until_s:
            done.append(self._attempt("logs wait", lambda: self._send(now_s + sending_s)))
        if now_s - self._pruned_s > _BETWEEN_SUMMARIES_S:
            self._prune(now_s)
        if now_s - self._summed_up_s > _BETWEEN_SUMMARIES_S:
            self.sum_up()
        return all(done) and not self._failing

    def sum_up(self) -> None:
        """Say what happened since the last time."""
        count = self._counted
        _LOG.info(
            "%s done, %d without a log; %s and %s %s, %d refused, %d waiting",
            _number(count["done"], "job"),
            count["without"],
            _number(count["trace"], "trace"),
            _number(count["outcome"], "outcome"),
            self._sent,
            count["refused"],
            self._state.waiting(),
        )
        self._counted.clear()
        self._summed_up_s = self._clock()

    def _attempt(self, failure: str, step: Callable[[], None]) -> bool:
        """Try a step; say when it begins to fail, fails otherwise, and works again."""
        try:
            step()
        except IoncastError as error:
            if self._failing.get(failure) != str(error):
                self._failing[failure] = str(error)
                _LOG.error("%s: %s", failure, error)
            return False
        if self._failing.pop(failure, None):
            _LOG.info("no longer so: %s", failure)
        return True

    def _follow(self) -> None:
        now_s = self._clock()
        runs = job_runs(self._slurm.jobs(), self._licence, now_s)
        with self._state.transaction():
            before_s = self._state.moment(_FOLLOWED)
            if before_s is not None and now_s - before_s > _ROUNDS_OF_JOBS * self._period_s:
                self._state.remember(_GAP, min(before_s, self._state.moment(_GAP) or before_s))
            self._state.remember(_FOLLOWED, now_s)
            self._state.follow(runs)
        self._attempt("accounting does not answer", lambda: self._ask_accounting(now_s))
        listed = {(run.id, run.started_s) for run in runs}
        running = self._state.running()
        with self._state.transaction():
            # slurmctld forgot them, or they were put back into the queue.
            gone = [run for run in running if (run.id, run.started_s) not in listed]
            self._state.fill_in([replace(run, ended_s=now_s) for run in gone])

    def _ask_accounting(self, now_s: float) -> None:
        """Ask for jobs that began and ended while nobody watched."""
        since_s = self._state.moment(_GAP)
        if since_s is None:
            return
        try:
            jobs = self._slurm.ended_jobs(int(since_s - _CLOCKS_S), int(now_s) + 1)
        except SlurmAnswerError as error:
            is_too_long = now_s - since_s > _REMEMBERED_S
            if is_too_long and not self._is_without_accounting:
                self._is_without_accounting = True
                _LOG.warning(
                    "nobody watched since %s, and accounting cannot tell which jobs slurmctld"
                    " has forgotten meanwhile: %s",
                    datetime.fromtimestamp(since_s).isoformat(" ", "seconds"),
                    error,
                )
            jobs = []
        with self._state.transaction():
            self._state.fill_in(job_runs(jobs, self._licence, now_s, are_accounted=True))
            self._state.remember(_GAP, None)

    def _look(self) -> None:
        """Find logs of jobs that ended; what cannot be read keeps no other job waiting."""
        now_s = self._clock()
        self._logs.refresh()
        failure = None
        for run in self._state.ended():
            try:
                self._look_for(run, now_s)
            except InputError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _look_for(self, run: JobRun, now_s: float) -> None:
        assert run.ended_s is not None  # noqa: S101
        before_s, after_s = self._state.neighbours(run)
        found = self._logs.logs_of(
            run.id, run.started_s, run.ended_s, after_s=before_s, before_s=after_s
        )
        is_over = now_s > run.ended_s + self._wait_s
        # Which log its outcome is from can be told when all are there.
        if found.is_writing and not is_over:
            return
        known = self._state.paths_of(run)
        new = [path for path in found.paths if path not in known]
        if not new and not is_over:
            return
        is_outcome = len(new) == 1 and not known and run.io_nodes is not None
        with self._state.transaction():
            for path in new:
                self._state.add_delivery(run, "outcome" if is_outcome else "trace", path, now_s)
            if is_over:
                self._state.close_run(run, now_s)
        if is_over:
            self._counted["done"] += 1
            if not known and not new:
                self._counted["without"] += 1
                _LOG.debug("job %d of %s: no log", run.id, run.user)

    def _send(self, until_s: float) -> None:
        """Send what is due; also where nothing is, it is found out whether that could be sent."""
        if not self._is_system_checked:
            self._check_system()
        unreadable = None
        while self._clock() <= until_s and (delivery := self._state.next_delivery(self._clock())):
            run = self._state.run_of(delivery)
            try:
                self._deliver(delivery, run)
            except OSError as error:
                self._put_off(delivery)
                unreadable = unreadable or _unreadable(delivery.path, error)
            except IoncastError as error:
                self._put_off(delivery)
                self._be_silent(error)
                raise
            else:
                self._silences = 0
        if unreadable is not None:
            raise unreadable

    def _check_system(self) -> None:
        try:
            measured = self._service.measured_systems()
        except IoncastError as error:
            self._be_silent(error)
            raise
        if self._system not in measured:
            self._refuse_other_spelling(measured)
            # As the service says it with each trace.
            known = f"; known are {', '.join(measured)}" if measured else ""
            self._warn(f"nothing was measured on {self._system!r}, so nothing is decided{known}")
        self._is_system_checked = True

    def _refuse_other_spelling(self, measured: list[str]) -> None:
        """The service would refuse each log, and none be sent again."""
        for name in measured:
            if name.casefold() == self._system.casefold():
                raise InputError(
                    f"the system is called {name!r} in ioncast, not {self._system!r}",
                    where="system",
                    remedy="change it in the settings",
                )

    def _warn(self, warning: str) -> None:
        """Pass on what the service warns of, once."""
        if warning not in self._warnings:
            self._warnings.add(warning)
            _LOG.warning("the service warns: %s", " ".join(warning.split()))

    def _deliver(self, delivery: Delivery, run: JobRun) -> None:
        """Send a log and note what became of it; it is sent again if this ends in between."""
        try:
            log = open_log(delivery.path, run.user)
        except FileNotFoundError:
            self._refuse(delivery, run, "it is not there any more", is_log=False)
            return
        except InputError as error:
            self._refuse(delivery, run, error.what, is_log=False)
            return
        send = {"trace": self._service.send_trace, "outcome": self._service.send_outcome}
        with log:
            try:
                answer = send[delivery.kind](log, delivery.path.name, self._told(run))
            except ServiceRefusedError as error:
                if error.status not in _FINAL:
                    raise
                self._refuse(delivery, run, error.detail)
                return
        with self._state.transaction():
            moved_bytes = answer.get("bytes")
            self._state.note(delivery, self._clock(), delivery.kind, moved_bytes=moved_bytes)
            self._choose_outcome(run)
        self._counted[delivery.kind] += 1
        for warning in answer.get("warnings") or []:
            self._warn(str(warning))
        self._say(run)

    def _refuse(self, delivery: Delivery, run: JobRun, why: str, *, is_log: bool = True) -> None:
        """Give a log up; what is none of the job's leaves the outcome to another."""
        now_s = self._clock()
        kind = delivery.kind if is_log else "trace"
        with self._state.transaction():
            self._state.note(delivery, now_s, kind, refused=why)
            if kind == "outcome":
                # The run is worth being known all the same; if it is already, it is the same run.
                self._state.add_delivery(run, "trace", delivery.path, now_s)
            else:
                self._choose_outcome(run)
        self._counted["refused"] += 1
        what = "its outcome" if kind == "outcome" else "its trace"
        where = visible(delivery.path)
        _LOG.warning("job %d of %s: %s is refused (%s): %s", run.id, run.user, what, where, why)
        self._say(run)

    def _choose_outcome(self, run: JobRun) -> None:
        """Let the log that moved most bytes tell what a job of several logs got."""
        if run.io_nodes is None or self._state.account_of(run).waiting:
            return
        if not self._state.has_outcome(run) and (path := self._state.largest_trace(run)):
            self._state.add_delivery(run, "outcome", path, self._clock())

    def _say(self, run: JobRun) -> None:
        """Say what became of a job, when all its logs are sent or refused."""
        account = self._state.account_of(run)
        if account.waiting or not account.traces + account.outcomes:
            return
        sent = [
            _number(count, what)
            for count, what in ((account.outcomes, "outcome"), (account.traces, "trace"))
            if count
        ]
        had = "I/O nodes unknown" if run.io_nodes is None else _number(run.io_nodes, "I/O node")
        told = " and ".join(sent)
        _LOG.info("job %d of %s: %s %s, %s", run.id, run.user, told, self._sent, had)

    def _told(self, run: JobRun) -> RunOf:
        return RunOf(
            system=self._system,
            job_id=str(run.id),
            user=run.user,
            name=run.name,
            nodes=run.nodes,
            io_nodes=run.io_nodes,
            decision_id=run.decision_id,
        )

    def _put_off(self, delivery: Delivery) -> None:
        wait_s = min(self._period_s * 2 ** min(delivery.attempts, 20), _LONGEST_WAIT_S)
        with self._state.transaction():
            self._state.put_off(delivery, self._clock() + wait_s)

    def _be_silent(self, error: IoncastError) -> None:
        """Leave a service alone that is away, or that says when to come again."""
        pause_s = min(self._period_s * 2 ** min(self._silences, 20), _LONGEST_PAUSE_S)
        if isinstance(error, ServiceRefusedError) and error.retry_after_s:
            pause_s = max(pause_s, error.retry_after_s)
        self._silent_until_s = self._clock() + pause_s
        self._silences += 1

    def _prune(self, now_s: float) -> None:
        self._pruned_s = now_s
        with self._state.transaction():
            unsent = self._state.prune(now_s - _KEPT_S)
        if unsent:
            _LOG.warning("%s could not be sent for weeks, and never will", _number(unsent, "log"))


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be read: {error.strerror or error}", where=str(path))
