"""`ioncast slurm arbitrate`: shares I/O nodes among the jobs that wait, again and again."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.arbiter.arbitration import Change, as_decided, decisions_of, plan, releases
from scheduler_plugin.clients import clients
from scheduler_plugin.marks import without_hold
from scheduler_plugin.service_client import Ioncast
from scheduler_plugin.settings import Settings, read_settings
from scheduler_plugin.slurm.client import Slurm
from scheduler_plugin.slurm.errors import SlurmAnswerError
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.stopping import ended_by_signals
from scheduler_plugin.visible_text import visible

_SUBMISSION_S = 0.5
# A job's decision is asked for while Slurm's users wait.
_SERVICE_TIMEOUT_S = 5.0


@click.command(
    "arbitrate",
    epilog="""\b
Examples:
  ioncast slurm arbitrate --config /etc/ioncast/arbiter.toml
  ioncast slurm arbitrate --config arbiter.toml --once --dry-run
""",
)
@click.option(
    "--config", metavar="FILE.toml", required=True, type=click.Path(), help="The settings."
)
@click.option("--once", is_flag=True, help="Look at the jobs once.")
@click.option("--dry-run", is_flag=True, help="Look once, and only say what would be changed.")
def arbitrate(config: str, once: bool, dry_run: bool) -> None:
    """Share the I/O nodes among all jobs that wait, for the highest global bandwidth.

    Jobs that job_submit.lua holds (mode "arbitrate") are released with the licences they get;
    what others that wait got is changed until they start. Running jobs keep theirs. At its end
    it releases what is held, as it was decided at submission.
    """
    settings = read_settings(config)
    logging.basicConfig(level=logging.WARNING, format="ioncast: %(message)s", stream=sys.stderr)
    with clients(settings, _SERVICE_TIMEOUT_S) as (slurm, service):
        arbiter = Arbiter(settings, slurm, service, is_dry=dry_run)
        if once or dry_run:
            _look_once(arbiter)
        else:
            _go_on(arbiter, settings)


@dataclass
class Arbiter:
    """What is done each time.

    Parameters
    ----------
    settings : Settings
        The site's.
    slurm : Slurm
        Whose jobs.
    service : Ioncast
        Whose decisions.
    is_dry : bool
        Whether nothing is changed.
    """

    settings: Settings
    slurm: Slurm
    service: Ioncast
    is_dry: bool = False
    # Decisions do not change.
    _curves: dict[str, dict[int, float]] = field(default_factory=dict)
    # Who holds these again is somebody else.
    _released: set[int] = field(default_factory=set)
    # Of this round, and of the one before: what goes on is said once.
    _complaints: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    def round(self, now_s: float) -> list[Change]:
        """Change what is to be changed now.

        Returns
        -------
        list of Change
            What was changed.

        Raises
        ------
        SlurmError
            When Slurm cannot be asked.
        """
        self._said, self._complaints = self._complaints, set()
        jobs = self._jobs()
        self._learn(decisions_of(jobs))
        licence = self.settings.licence.name
        changes = plan(jobs, self._curves, self.pool(), licence, self.settings.arbitrate, now_s)
        return [change for change in changes if self._made(change)]

    def held(self) -> list[Change]:
        """The ends of all holds of ours that there still are."""
        return releases(self._jobs())

    def release_all(self) -> None:
        """End the holds of all jobs that we hold."""
        for change in self.held():
            self._made(change)

    def pool(self) -> int:
        """How many I/O nodes there are."""
        name = self.settings.licence.name
        for licence in self.slurm.licences():
            if licence.name == name:
                return licence.total
        raise SlurmAnswerError(
            f"Slurm has no licence {name!r}",
            where="slurm.conf",
            remedy=f"set Licenses={name}:N there, or licence.name in the settings",
        )

    def _jobs(self) -> list[Job]:
        jobs = self.slurm.jobs()
        self._released &= {job.id for job in jobs}
        return [
            replace(job, admin_comment=without_hold(job.admin_comment))
            if job.id in self._released
            else job
            for job in jobs
        ]

    def _learn(self, decisions: list[str]) -> None:
        """Get curves that are not known yet, and forget those of jobs that do not wait."""
        self._curves = {key: self._curves[key] for key in decisions if key in self._curves}
        for decision_id in decisions:
            if decision_id in self._curves:
                continue
            try:
                found = self.service.decision(decision_id)
            except IoncastError as error:
                # Jobs that nothing is known of are not held for long.
                self._complain("decisions cannot be read", error)
                return
            if found is not None:
                self._curves[decision_id] = _curve(found)

    def _made(self, change: Change) -> bool:
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
                # It started or ended meanwhile; or Slurm has not so many licences.
                self._complain(f"job {change.job.id} stays as it is", error)
                can_be_released = change.is_release and is_new
                return can_be_released and self._made(as_decided(change.job, "Slurm says no"))
            if change.is_release:
                self._released.add(change.job.id)
        _say(_told(change, self.is_dry))
        return True

    def _complain(self, failure: str, error: IoncastError) -> None:
        if failure not in self._said | self._complaints:
            _say(f"{failure}: {error}")
        self._complaints.add(failure)

    def _comment(self, change: Change) -> str | None:
        """The job's comment without the hold, where Slurm takes it."""
        is_new = change.admin_comment != change.job.admin_comment
        return change.admin_comment if is_new and self.slurm.can_change_admin_comment else None


def _curve(decision: dict[str, Any]) -> dict[int, float]:
    return {int(io_nodes): float(expected) for io_nodes, expected, *_ in decision["curve"]}


def _told(change: Change, is_dry: bool) -> str:
    job = change.job
    verb = "would be " if is_dry else ""
    done = "released with" if change.is_release else "changed to"
    is_new = change.licenses != job.licenses
    before = f" (it had {visible(job.licenses or 'none')})" if is_new else ""
    licenses = visible(change.licenses or "no licences")
    return f"job {job.id} of {visible(job.user)} {verb}{done} {licenses}{before}: {change.why}"


def _say(line: str) -> None:
    click.echo(f"ioncast: {line}", err=True)


def _look_once(arbiter: Arbiter) -> None:
    changes = arbiter.round(time.time())
    if arbiter.is_dry:
        _say(f"{len(changes)} jobs would be changed")
    else:
        held = len(arbiter.held())
        left = f"; {held} still held, whose decisions cannot be read yet" if held else ""
        _say(f"{len(changes)} jobs changed{left}")


def _go_on(arbiter: Arbiter, settings: Settings) -> None:
    """Arbitrate until a signal comes."""
    heartbeat = Path(settings.arbitrate.heartbeat)
    failure = ""
    with _only_one(heartbeat):
        _say(f"jobs share {settings.licence.name} by {settings.arbitrate.policy}")
        try:
            with ended_by_signals() as came:
                while not came:
                    next_s = time.monotonic() + settings.arbitrate.period_s
                    failure = _attempt(arbiter, heartbeat, failure)
                    time.sleep(max(next_s - time.monotonic(), 0))
        finally:
            _end(arbiter, heartbeat)


def _attempt(arbiter: Arbiter, heartbeat: Path, before: str) -> str:
    """Do what is to be done; gives what failed, which is said when it begins and ends."""
    try:
        arbiter.round(time.time())
        _beat(heartbeat)
    except IoncastError as error:
        if str(error) != before:
            _say(str(error))
        return str(error)
    if before:
        _say(f"no longer so: {before}")
    return ""


@contextlib.contextmanager
def _only_one(heartbeat: Path) -> Iterator[None]:
    """Two would undo what the other one does."""
    path = heartbeat.with_name(f"{heartbeat.name}.lock")
    with _writable(path):
        lock = path.open("ab")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another arbiter runs", where=str(path), remedy="stop it first"
            ) from None
        yield


def _end(arbiter: Arbiter, heartbeat: Path) -> None:
    """Hold nothing any more."""
    # One that stays is old soon.
    with contextlib.suppress(OSError):
        heartbeat.unlink()
    # What is being submitted may have seen it just now.
    time.sleep(_SUBMISSION_S)
    try:
        arbiter.release_all()
    except IoncastError as error:
        _say(f"jobs may still be held: {error}")


def _beat(heartbeat: Path) -> None:
    """Say when it was alive; who reads it never finds half a number."""
    new = heartbeat.with_name(f"{heartbeat.name}.{os.getpid()}")
    with _writable(heartbeat):
        new.write_text(f"{int(time.time())}\n")
        new.replace(heartbeat)


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"arbitrate.heartbeat cannot be written: {error.strerror}",
            where=str(path),
            remedy="make the folder, for this user",
        ) from error
