"""The arbiter's rounds: read jobs and decisions, plan, and change waiting jobs in Slurm."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import Any

from ioncast_base.errors import IoncastError
from ioncast_base.visible_text import visible
from scheduler_plugin.arbiter.arbitration import Change, as_decided, decisions_of, plan, releases
from scheduler_plugin.arbiter.heartbeat import Heartbeat
from scheduler_plugin.marks import without_hold
from scheduler_plugin.rounds import Failures, ended_by_signals, repeat
from scheduler_plugin.service_client import Ioncast
from scheduler_plugin.settings import Settings
from scheduler_plugin.slurm.client import Slurm
from scheduler_plugin.slurm.errors import SlurmAnswerError
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licence_limits import Limits

_LOG = logging.getLogger("ioncast.arbiter")
# The plugin holds a job right after it has read the heartbeat; so long after the heartbeat's end
# every job that it held is in Slurm's queue.
_SUBMISSION_S = 0.5
_BETWEEN_LIMITS_S = 60.0


@dataclass
class Arbiter:
    """The arbiter of one cluster.

    Parameters
    ----------
    settings : Settings
        The site's settings.
    slurm : Slurm
        Client of slurmrestd, for the jobs.
    service : Ioncast
        Client of the service, for the decisions.
    is_dry : bool
        Whether changes are only logged.
    """

    settings: Settings
    slurm: Slurm
    service: Ioncast
    is_dry: bool = False
    # Curves by decision id. A decision never changes, so each is read once.
    _curves: dict[str, dict[int, float]] = field(default_factory=dict)
    # Jobs that this arbiter released; if one is held again, somebody else holds it.
    _released: set[int] = field(default_factory=set)
    # Limits of slurmdbd, and the Unix time when it was asked for them.
    _limits: Limits | None = None
    _limits_s: float = 0.0
    _failures: Failures = field(default_factory=lambda: Failures(_LOG))
    # Complaints of this round and of the last one; a complaint that goes on is logged once.
    _complaints: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    def round(self, now_s: float) -> list[Change]:
        """Plan and change the waiting jobs once.

        Parameters
        ----------
        now_s : float
            Unix time.

        Returns
        -------
        list of Change
            The changes that were made; in a dry run, that would be made.

        Raises
        ------
        SlurmError
            If Slurm's jobs or licences cannot be read.
        """
        self._said, self._complaints = self._complaints, set()
        jobs = self._jobs()
        self._learn(decisions_of(jobs))
        limits = self._limits_now(now_s)
        changes = plan(jobs, self._curves, limits, self.settings.arbitrate, now_s)
        return [change for change in changes if self._made(change)]

    def held(self) -> list[Change]:
        """The releases of all jobs that the arbiter still holds."""
        return releases(self._jobs())

    def release_all(self) -> None:
        """Release all jobs that the arbiter holds."""
        for change in self.held():
            self._made(change)

    def pool(self) -> int:
        """Number of I/O nodes that Slurm has as licences."""
        name = self.settings.licence.name
        for licence in self.slurm.licences():
            if licence.name == name:
                return licence.total
        raise SlurmAnswerError(
            f"Slurm has no licence {name!r}",
            where="slurm.conf",
            remedy=f"set Licenses={name}:N there, or licence.name in the settings",
        )

    def _limits_now(self, now_s: float) -> Limits:
        """Slurm's limits: the number of licences of now, limits of slurmdbd of the last minute."""
        name, total = self.settings.licence.name, self.pool()
        if abs(now_s - self._limits_s) > _BETWEEN_LIMITS_S:
            self._limits_s = now_s
            # If it fails, the limits that were read before stay.
            self._failures.attempt("reading limits of slurmdbd", lambda: self._read_limits(total))
        return replace(self._limits or Limits(name, total), total=total)

    def _read_limits(self, total: int) -> None:
        self._limits = self.slurm.limits(self.settings.licence.name, total)

    def _jobs(self) -> list[Job]:
        """All jobs; without the hold in the mark of those that were released.

        Slurm 22.05 cannot change the comment, so there the mark still says that we hold the job.
        """
        jobs = self.slurm.jobs()
        self._released &= {job.id for job in jobs}
        return [
            replace(job, admin_comment=without_hold(job.admin_comment))
            if job.id in self._released
            else job
            for job in jobs
        ]

    def _learn(self, decisions: list[str]) -> None:
        """Read the curves that are not known yet; forget those of jobs that do not wait."""
        self._curves = {key: self._curves[key] for key in decisions if key in self._curves}
        for decision_id in decisions:
            if decision_id in self._curves:
                continue
            try:
                found = self.service.decision(decision_id)
            except IoncastError as error:
                # The plan releases jobs without a curve after a minute.
                self._complain("decisions cannot be read", error)
                return
            if found is not None:
                self._curves[decision_id] = _curve(found)

    def _made(self, change: Change) -> bool:
        """Make a change and log it; return whether Slurm accepted it."""
        if not self.is_dry:
            is_new = change.licenses != change.job.licenses
            try:
                self.slurm.change(
                    change.job.id,
                    licenses=change.licenses if is_new else None,
                    held=False if change.is_release else None,
                    admin_comment=self._comment(change),
                )
            except SlurmAnswerError as error:
                # The job has started or ended meanwhile, or Slurm does not have these licences.
                self._complain(f"job {change.job.id} is not changed", error)
                can_be_released = change.is_release and is_new
                return can_be_released and self._made(
                    as_decided(change.job, "Slurm rejects other licences")
                )
            if change.is_release:
                self._released.add(change.job.id)
        _LOG.info("%s", _described(change, self.is_dry))
        return True

    def _complain(self, failure: str, error: IoncastError) -> None:
        if failure not in self._said | self._complaints:
            _LOG.warning("%s: %s", failure, error)
        self._complaints.add(failure)

    def _comment(self, change: Change) -> str | None:
        """The job's comment without the hold, if Slurm can change comments."""
        is_new = change.admin_comment != change.job.admin_comment
        return change.admin_comment if is_new and self.slurm.can_change_admin_comment else None


def share_once(arbiter: Arbiter) -> None:
    """Do one round and log its result."""
    changes = arbiter.round(time.time())
    if arbiter.is_dry:
        _LOG.info("%d jobs would be changed", len(changes))
    else:
        held = len(arbiter.held())
        left = f"; {held} still held, because their decisions cannot be read yet" if held else ""
        _LOG.info("%d jobs changed%s", len(changes), left)


def share_until_stopped(arbiter: Arbiter) -> None:
    """Do rounds until a signal comes, then release all jobs that are held.

    Raises
    ------
    InputError
        If another arbiter runs, or its heartbeat cannot be written.
    """
    settings = arbiter.settings
    heartbeat = Heartbeat(settings.arbitrate.heartbeat)
    failures = Failures(_LOG)

    def do_round() -> None:
        arbiter.round(time.time())
        # Only after a round that worked: the plugin must hold jobs only if somebody releases them.
        heartbeat.beat()

    with heartbeat.alone():
        _LOG.info("jobs share %s by %s", settings.licence.name, settings.arbitrate.policy)
        try:
            with ended_by_signals() as came:
                repeat(
                    lambda: failures.attempt("arbitration", do_round),
                    settings.arbitrate.period_s,
                    came,
                )
        finally:
            _end(arbiter, heartbeat)


def _end(arbiter: Arbiter, heartbeat: Heartbeat) -> None:
    heartbeat.end()
    time.sleep(_SUBMISSION_S)
    try:
        arbiter.release_all()
    except IoncastError as error:
        _LOG.error("jobs may still be held: %s", error)


def _curve(decision: dict[str, Any]) -> dict[int, float]:
    return {int(io_nodes): float(expected) for io_nodes, expected, *_ in decision["curve"]}


def _described(change: Change, is_dry: bool) -> str:
    job = change.job
    verb = "would be " if is_dry else ""
    done = "released with" if change.is_release else "changed to"
    is_new = change.licenses != job.licenses
    before = f" (it had {visible(job.licenses or 'none')})" if is_new else ""
    licenses = visible(change.licenses or "no licences")
    return f"job {job.id} of {visible(job.user)} {verb}{done} {licenses}{before}: {change.why}"
