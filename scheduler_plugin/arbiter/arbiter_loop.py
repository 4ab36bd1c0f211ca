"""The arbiter's rounds: read jobs and decisions, plan, and change waiting jobs in Slurm."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.files import program_of
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted
from scheduler_plugin.arbiter.arbitration import (
    CURVE_PATIENCE_S,
    Change,
    decisions_of,
    decisions_of_running,
    placing_of,
    plan,
    release_as_decided,
    releases,
)
from scheduler_plugin.arbiter.heartbeat import Heartbeat
from scheduler_plugin.arbiter.held_metrics import held_metrics
from scheduler_plugin.arbiter.placement import Program, Sharing, placed
from scheduler_plugin.arbiter.placement_list import disturbing_pairs, names_of_jobs, write_list
from scheduler_plugin.hook_settings import HookSettings, read_hook_settings
from scheduler_plugin.metrics_file import MetricsFile, common_metrics
from scheduler_plugin.rounds import Failures, ended_by_signals, repeat
from scheduler_plugin.service_client import Ioncast, SlowIoNodes
from scheduler_plugin.settings import SiteSettings
from scheduler_plugin.slurm.client import Slurm
from scheduler_plugin.slurm.errors import SlurmAnswerError
from scheduler_plugin.slurm.job_changes import JobChange
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.token_files import token_ends_s

_LOG = logging.getLogger("ioncast.arbiter")
# The plugin holds a job right after it has read the heartbeat; so long after the heartbeat's end
# every job that it held is in Slurm's queue.
_SUBMISSION_S = 0.5
_BETWEEN_LIMITS_S = 60.0
# The service compares outcomes once a minute if any came, and at least once a day. An answer counts
# for an hour, if the service looked for slow I/O nodes in the last two days.
_BETWEEN_SLOW_S, _TOLD_S, _FOUND_S = 600.0, 3600.0, 2 * 86_400.0
# A slow service must not delay the release of jobs whose decisions are known. The other decisions
# are read in the next rounds; usually a thousand can be read in this time.
_READING_S = 5.0


@dataclass
class Arbiter:
    """The arbiter of one cluster.

    Parameters
    ----------
    is_dry : bool
        Whether changes are only logged.
    """

    settings: SiteSettings
    slurm: Slurm
    service: Ioncast
    is_dry: bool = False
    # Curves by decision id. A decision never changes, so each is read once.
    _curves: dict[str, dict[int, float]] = field(default_factory=dict)
    # Set only where jobs get named I/O nodes, and the hooks read a list.
    _hooks: HookSettings | None = None
    # The slow I/O nodes, and the Unix times of the last answer and of the last question.
    _slow: SlowIoNodes = field(default_factory=SlowIoNodes)
    _slow_told_s: float = 0.0
    _slow_asked_s: float = 0.0
    # Names of programs by decision id; empty if a decision does not tell.
    _programs: dict[str, str] = field(default_factory=dict)
    # Decisions of running jobs that the service does not know, so they are asked for once.
    _unknown: set[str] = field(default_factory=set)
    # Jobs that this arbiter released, and jobs whose release Slurm rejected in the last round.
    _refused: set[int] = field(default_factory=set)
    # For the metrics: jobs that are held after the last round, and changes since the start.
    _held: list[Job] = field(default_factory=list)
    _changed: Counter[str] = field(default_factory=Counter)
    # Limits of slurmdbd, and the Unix time when it was asked for them.
    _limits: Limits | None = None
    _limits_s: float = 0.0
    _failures: Failures = field(default_factory=lambda: Failures(_LOG))
    # Complaints of this round and of the last one; a complaint that goes on is logged once.
    _complaints: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    def round(self, now_s: float, progress: Callable[[], None] = lambda: None) -> list[Change]:
        """Plan and change the waiting jobs once.

        Raises
        ------
        SlurmError
            If Slurm's jobs or licences cannot be read, or if Slurm rejects the same releases as in
            the last round, and accepts no other.
        """
        self._said, self._complaints = self._complaints, set()
        jobs = self.slurm.jobs()
        running: dict[str, int] = {}
        if self.settings.arbitrate.hooks:
            self._failures.attempt("reading hooks.conf", self._read_hooks)
            if self._shared_hooks is not None:
                running = decisions_of_running(jobs)
        settled_s = now_s - CURVE_PATIENCE_S
        settled = {key for key, submitted_s in running.items() if submitted_s < settled_s}
        self._learn([*decisions_of(jobs, now_s), *running], settled)
        hooks, curves = self._hooks, self._curves
        if self._shared_hooks is not None and hooks is not None:
            # With shared I/O nodes there are more licences than I/O nodes.
            most = len(set(hooks.io_nodes))
            curves = {key: _up_to(most, curve) for key, curve in curves.items()}
        limits = self._limits_now(now_s)
        changes = plan(jobs, curves, limits, self.settings.arbitrate, now_s)
        held = [change.job for change in releases(jobs, now_s)]
        if hooks is not None and not self.is_dry:
            # Before a release, because the job may start at once.
            self._failures.attempt(
                "naming I/O nodes", lambda: self._name(hooks, jobs, changes, now_s)
            )
        made = self._made(changes, progress)
        self._changed.update("released" if each.is_release else "changed" for each in made)
        released = {change.job.id for change in made if change.is_release}
        self._held = [job for job in held if job.id not in released]
        self._check_releases(changes, released)
        if hooks is not None:
            # After the releases, which must not wait for an answer.
            self._failures.attempt("asking for slow I/O nodes", lambda: self._ask_for_slow(now_s))
        return made

    def held(self) -> list[Change]:
        """The releases of all jobs that the arbiter still holds."""
        return releases(self.slurm.jobs(), time.time())

    def release_all(self) -> None:
        """Release all jobs that the arbiter holds."""
        self._made(self.held(), lambda: None)

    def metrics(self, failures: Failures, worked_s: float | None) -> list[Metric]:
        """The numbers for Prometheus; `worked_s` is the Unix time of the last round that worked."""
        token_file = self.settings.slurmrestd.token_file
        errors = {**self._failures.counts, **failures.counts}
        return [
            *common_metrics("arbiter", errors, worked_s, token_ends_s(token_file)),
            *held_metrics(self._held, self._changed),
        ]

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

    def _learn(self, decisions: Sequence[str], settled: Set[str]) -> None:
        """Read the curves that are not known yet; forget those of all other decisions.

        The service stores a decision some time after it was made; it has stored those in `settled`
        or never will.
        """
        self._unknown &= settled
        self._curves = {key: self._curves[key] for key in decisions if key in self._curves}
        self._programs = {key: self._programs[key] for key in self._curves}
        end_s = time.monotonic() + _READING_S
        for decision_id in decisions:
            if decision_id in self._curves or decision_id in self._unknown:
                continue
            try:
                found = self.service.decision(decision_id)
            except IoncastError as error:
                # The plan releases jobs without a curve after a minute.
                self._complain("decisions cannot be read", error)
                return
            if found is not None:
                self._curves[decision_id] = _curve(found)
                self._programs[decision_id] = program_of(str(found.get("executable") or ""))
            elif decision_id in settled:
                self._unknown.add(decision_id)
            if time.monotonic() > end_s:
                return

    def _read_hooks(self) -> None:
        """Read the hooks' settings, which name the I/O nodes and say how many jobs share each."""
        self._hooks = None
        path = self.settings.arbitrate.hooks
        hooks = read_hook_settings(Path(path or ""))
        if hooks.io_nodes and hooks.placement and hooks.folder:
            self._hooks = hooks
        elif hooks.jobs_per_io_node > 1:
            needed = "IO_NODES, PLACEMENT and JOBS_FOLDER"
            raise InputError(f"{needed} must be set", where=path)

    @property
    def _shared_hooks(self) -> HookSettings | None:
        """The hooks' settings, if jobs share I/O nodes."""
        hooks = self._hooks
        return None if hooks is None or hooks.jobs_per_io_node == 1 else hooks

    def _ask_for_slow(self, now_s: float) -> None:
        """Ask for the slow I/O nodes once in ten minutes."""
        if abs(now_s - self._slow_asked_s) < _BETWEEN_SLOW_S:
            return
        self._slow_asked_s = now_s
        found = self.service.slow_io_nodes(self.settings.system)
        if found.ratios.keys() != self._slow.ratios.keys():
            ratios = found.ratios.items()
            said = [f"{visible(name)} ({ratio:.1f} times)" for name, ratio in ratios]
            _LOG.info("slow I/O nodes: %s", ", ".join(said) or "none")
        self._slow, self._slow_told_s = found, now_s

    def _slow_of(self, hooks: HookSettings, now_s: float) -> tuple[str, ...]:
        """The slow ones of the site's I/O nodes, by an answer that is not old."""
        is_told = abs(now_s - self._slow_told_s) < _TOLD_S
        is_new = abs(now_s - self._slow.at_s) < _FOUND_S
        slow = self._slow.ratios if is_told and is_new else ()
        return tuple(name for name in dict.fromkeys(hooks.io_nodes) if name in slow)

    def _name(
        self, hooks: HookSettings, jobs: Sequence[Job], changes: Sequence[Change], now_s: float
    ) -> None:
        """Write which I/O nodes the hooks give to waiting jobs, and which are slow."""
        slow = self._slow_of(hooks, now_s)
        if hooks.jobs_per_io_node == 1:
            # All others are as good.
            if slow:
                write_list(hooks.placement, {}, int(now_s), slow)
            return
        path = self.settings.arbitrate.disturbances
        pairs = disturbing_pairs(path) if path else frozenset[frozenset[Program]]()
        sharing = Sharing(hooks.io_nodes, hooks.jobs_per_io_node, pairs, frozenset(slow))
        own = names_of_jobs(hooks.folder, [job.id for job in jobs if job.is_running])
        known = self._curves, self._programs, self.settings.licence.name
        names = placed(placing_of(jobs, changes, *known, own, now_s), sharing)
        write_list(hooks.placement, names, int(now_s), slow)

    def _made(self, changes: Sequence[Change], progress: Callable[[], None]) -> list[Change]:
        """Make changes and log them; return those that Slurm accepted."""
        if self.is_dry:
            for change in changes:
                _LOG.info("%s", _described(change, is_dry=True))
            return list(changes)
        made = self._accepted(changes, progress)
        known = {change.job.id for change in made}
        again = [
            release_as_decided(change.job, "Slurm rejects other licences")
            for change in changes
            if change.is_release and change.job.id not in known and _has_new_licences(change)
        ]
        return made + (self._accepted(again, progress) if again else [])

    def _accepted(self, changes: Sequence[Change], progress: Callable[[], None]) -> list[Change]:
        wanted = {change.job.id: change for change in changes}
        made = []

        def note(sent: JobChange, error: SlurmAnswerError | None) -> None:
            change = wanted[sent.job_id]
            if error is not None:
                # The job has started or ended meanwhile, or Slurm does not have these licences.
                self._complain(f"job {sent.job_id} is not changed", error)
                return
            made.append(change)
            _LOG.info("%s", _described(change, is_dry=False))
            progress()

        self.slurm.change_all(map(_to_send, changes), note)
        return made

    def _check_releases(self, changes: Sequence[Change], released: set[int]) -> None:
        """Raise an error if Slurm releases no job, round after round: then none should be held."""
        refused = {change.job.id for change in changes if change.is_release} - released
        is_stuck = bool(refused & self._refused) and not released
        self._refused = refused
        if is_stuck:
            raise SlurmAnswerError(
                f"Slurm rejects the release of {counted(len(refused), 'held job')}"
            )

    def _complain(self, failure: str, error: IoncastError) -> None:
        if failure not in self._said | self._complaints:
            _LOG.warning("%s: %s", failure, error)
        self._complaints.add(failure)


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
    """Do rounds until a signal comes, then release all jobs that are held."""
    settings = arbiter.settings
    if settings.arbitrate.hooks:
        # The import takes long, and jobs must not wait for it in a round.
        import scipy.optimize  # noqa: F401, PLC0415
    heartbeat = Heartbeat(settings.arbitrate.heartbeat, settings.arbitrate.lock)
    failures = Failures(_LOG)
    file = MetricsFile(settings.arbitrate.metrics, _LOG)
    worked_s: float | None = None

    def do_round() -> None:
        nonlocal worked_s
        # Only after a change or a round that worked: the plugin must hold jobs only if somebody
        # releases them. A round with many changes takes longer than a heartbeat counts.
        arbiter.round(time.time(), heartbeat.beat)
        heartbeat.beat()
        worked_s = time.time()

    def do_round_and_tell() -> None:
        failures.attempt("arbitration", do_round)
        file.write(arbiter.metrics(failures, worked_s))

    with heartbeat.alone():
        _LOG.info("jobs share %s", settings.licence.name)
        try:
            with ended_by_signals() as came:
                repeat(do_round_and_tell, settings.arbitrate.period_s, came)
        finally:
            _end(arbiter, heartbeat)
            file.close()


def _end(arbiter: Arbiter, heartbeat: Heartbeat) -> None:
    heartbeat.end()
    time.sleep(_SUBMISSION_S)
    try:
        arbiter.release_all()
    except IoncastError as error:
        _LOG.error("jobs may be held for some minutes more: %s", error)


def _to_send(change: Change) -> JobChange:
    """The change in Slurm's words; a release replaces the begin time."""
    return JobChange(
        change.job.id,
        licenses=change.licenses if _has_new_licences(change) else None,
        begins_s=int(time.time()) if change.is_release else None,
        is_leader=change.job.het_job_id == change.job.id,
    )


def _has_new_licences(change: Change) -> bool:
    return change.licenses != change.job.licenses


def _curve(decision: dict[str, Any]) -> dict[int, float]:
    """The expected bandwidth with each number that the job may get; one that is tried stays."""
    return {
        int(io_nodes): float(expected)
        for io_nodes, expected, *_ in decision["curve"]
        if not decision.get("explored") or io_nodes == decision["io_nodes"]
    }


def _up_to(most: int, curve: Mapping[int, float]) -> dict[int, float]:
    return {io_nodes: mib_s for io_nodes, mib_s in curve.items() if io_nodes <= most}


def _described(change: Change, is_dry: bool) -> str:
    job = change.job
    verb = "would be " if is_dry else ""
    done = "released with" if change.is_release else "changed to"
    is_new = _has_new_licences(change)
    before = f" (it had {visible(job.licenses or 'none')})" if is_new else ""
    licenses = visible(change.licenses or "no licences")
    return f"job {job.id} of {visible(job.user)} {verb}{done} {licenses}{before}: {change.why}"
