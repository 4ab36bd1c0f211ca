"""A recorded queue with the I/O of its jobs, ready to be replayed with another pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.logged_io import ApplicationCurve, LoggedIo
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replayed_machine import Machine, static
from ioncast.worth.workload import Ints, Workload

Reason = Literal["no log", "no benchmark", "no I/O time"]
# sacct prints local times, so a job's log may seem to start this much earlier or later.
_ZONES_S = 86_400
# Slurm and Darshan round times.
_LONGER_S = 60.0


@dataclass(frozen=True, eq=False)
class JobIo:
    """The I/O of a job of the queue; `reason` says why nothing is known of it."""

    job: QueuedJob
    program: str | None
    mib: float
    io_seconds: float
    curve: ApplicationCurve | None
    reason: Reason | None


@dataclass(frozen=True)
class UnknownApplication:
    """Jobs that are replayed as they were recorded, because nothing is known of their I/O.

    `application` is their program, or user and job name. Hours are `unit` of the queue.
    """

    application: str
    reason: Reason
    jobs: int
    hours: float


def joined(jobs: Iterable[QueuedJob], logs: Iterable[LoggedIo]) -> list[JobIo]:
    """Give each job the I/O of its logs, which have its number and fit into its time.

    A job with several logs has the curve of the log with most bytes; all bytes move at its speed.
    """
    of_number: dict[int | None, list[LoggedIo]] = defaultdict(list)
    for log in logs:
        if log.job_id is not None:
            of_number[log.job_id].append(log)
    return [_of_job(job, of_number.get(job.job_id, ())) for job in jobs]


def _of_job(job: QueuedJob, logs: Sequence[LoggedIo]) -> JobIo:
    fitting = [log for log in logs if _fits(log, job)]
    if not fitting:
        return JobIo(job, None, 0.0, 0.0, None, "no log")
    largest = max(fitting, key=lambda log: log.mib)
    mib = sum(log.mib for log in fitting)
    if any(log.io_seconds is None for log in fitting):
        return JobIo(job, largest.program, mib, 0.0, None, "no I/O time")
    seconds = sum(log.io_seconds or 0.0 for log in fitting)
    known = sum(log.mib for log in fitting if log.curve is not None)
    if 2 * known < mib:
        return JobIo(job, largest.program, mib, seconds, None, "no benchmark")
    with_curve = [log for log in fitting if log.curve is not None]
    curve = max(with_curve, key=lambda log: log.mib).curve if with_curve else None
    return JobIo(job, largest.program, mib, seconds, curve, None)


def _fits(log: LoggedIo, job: QueuedJob) -> bool:
    """Whether a log can be of a job: Slurm uses numbers again after some years."""
    if log.start_us is None or job.start_s is None:
        return False
    after_s = log.start_us / 1e6 - job.start_s
    is_in_time = -_ZONES_S <= after_s <= job.run_s + _ZONES_S
    return is_in_time and (log.run_seconds or 0.0) <= job.run_s + _LONGER_S


def hours_of(job: QueuedJob, *, of_cores: bool) -> float:
    """Core-hours of a job as it was recorded, or node-hours."""
    return (job.cores if of_cores and job.cores else job.nodes) * job.run_s / 3600


def unknown_applications(jobs: Iterable[JobIo], *, of_cores: bool) -> list[UnknownApplication]:
    """Add up the jobs of which nothing is known, the applications with most hours first."""
    found: dict[tuple[str, Reason], UnknownApplication] = {}
    for each in jobs:
        if each.reason is None:
            continue
        name = each.program or each.job.application.strip() or "unknown"
        before = found.get((name, each.reason), UnknownApplication(name, each.reason, 0, 0.0))
        hours = before.hours + hours_of(each.job, of_cores=of_cores)
        found[name, each.reason] = replace(before, jobs=before.jobs + 1, hours=hours)
    return sorted(found.values(), key=lambda each: -each.hours)


@dataclass(frozen=True, eq=False)
class KnownQueue:
    """The jobs of a queue as a workload with expected bandwidths, for one size of the pool.

    `sources` has for each curve of the workload the application, None of jobs of which nothing is
    known, and the only number of I/O nodes that these jobs get, if there is one.
    """

    work: Workload
    sources: tuple[tuple[ApplicationCurve | None, int | None], ...]

    def drawn(self, draw: int | None, jobs: Ints) -> Workload:
        """Take some jobs, with expected bandwidths or a draw of them."""
        names = ("submit_s", "recorded_s", "limit_s", "nodes", "curve", "compute_s", "moved_mib")
        some = {name: getattr(self.work, name)[jobs] for name in names}
        curves = tuple(_curve(*source, draw) for source in self.sources)
        return replace(self.work, curves=curves, **some)


def known_queue(jobs: Sequence[JobIo], machine: Machine) -> KnownQueue:
    """Prepare a queue for a machine.

    A job of which nothing is known keeps its recorded time and gets the static share of I/O nodes.
    A job whose decision would rest on too little gets this share too, at its curve's bandwidth.
    """
    measured = sorted({n for each in jobs if each.curve for n in each.curve.io_nodes})
    places: dict[tuple[ApplicationCurve | None, int | None], int] = {}
    curve = []
    for each in jobs:
        share = None
        if each.curve is None or not each.curve.is_sure:
            numbers = each.curve.io_nodes if each.curve else measured
            share = static(IoCurve("", None, dict.fromkeys(numbers, 1.0)), each.job.nodes, machine)
        curve.append(places.setdefault((each.curve, share), len(places)))
    own = [each.job for each in jobs]
    sources = tuple(places)
    work = Workload(
        curves=tuple(_curve(*source, None) for source in sources),
        believed=tuple(_believed(*source) for source in sources),
        submit_s=np.array([job.submit_s for job in own]),
        recorded_s=np.array([job.run_s for job in own]),
        limit_s=np.array([job.limit_s for job in own]),
        nodes=np.array([job.nodes for job in own], dtype=np.int64),
        curve=np.array(curve, dtype=np.int64),
        compute_s=np.array(
            [
                max(each.job.run_s - each.io_seconds, 0.0) if each.curve else each.job.run_s
                for each in jobs
            ]
        ),
        moved_mib=np.array([each.mib if each.curve else 0.0 for each in jobs]),
        overlong=0,
    )
    return KnownQueue(work, sources)


def _curve(of: ApplicationCurve | None, share: int | None, draw: int | None) -> IoCurve:
    """Make the curve that gives I/O times: the expected one, or a draw."""
    if of is None:
        # Jobs of which nothing is known move no bytes, so any bandwidth will do.
        return IoCurve("", None, {0: 1.0, share or 0: 1.0})
    values = of.mib_s if draw is None else of.draws_mib_s[draw % len(of.draws_mib_s)]
    return IoCurve("", None, dict(zip(of.io_nodes, values.tolist(), strict=True)))


def _believed(of: ApplicationCurve | None, share: int | None) -> IoCurve:
    """Make the curve that policies decide by."""
    expected = _curve(of, share, None)
    if share is None:
        return expected
    return replace(expected, mib_s={share: expected.mib_s[share]})
