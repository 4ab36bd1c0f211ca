"""The worth of a pool of I/O nodes: a recorded queue, replayed with pools of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.policies import POLICIES
from ioncast.worth.policy import Policy, SimulatedArbiter
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replay import replay
from ioncast.worth.replayed_machine import Machine, check_pool
from ioncast.worth.valued_queue import (
    JobIo,
    KnownQueue,
    UnknownApplication,
    hours_of,
    known_queue,
    unknown_applications,
)
from ioncast.worth.workload import Floats, Ints, Workload, check_sizes
from ioncast_base.errors import InputError

REPLAYS = 50
"""Replays with drawn bandwidths, for intervals."""
# With drawn bandwidths, as many days are replayed as have about so many jobs, but at least one.
_JOBS_OF_A_REPLAY = 3_000
_DAY_S = 86_400.0
_SEED = 9366
# Nine of ten replays are inside an interval.
_ENDS = (5.0, 95.0)
# A larger pool must gain more than this share of the largest gain.
_NEAR = 0.99
_ENDLESS = 1 << 40
# The arms, in the order in which they are shown.
ARMS = {
    "direct": "all jobs access the file system directly",
    "static": "I/O nodes in proportion to compute nodes",
    "ioncast": "the decision of ioncast, and the arbiter divides free I/O nodes",
    "best": "each job the best number for it, and I/O nodes are never short",
}


@dataclass(frozen=True)
class ReplayedValue:
    """A value with expected bandwidths, and its interval: nine of ten replays are inside."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PoolArm:
    """An arm with a pool: hours of I/O of known jobs, core-hours and hours of waiting of all jobs.

    `saved_io_hours` and `saved_hours` (core-hours) are beside direct access, in the same replays;
    they are None without an arm of direct access.
    """

    pool: int
    arm: str
    io_hours: ReplayedValue
    hours: ReplayedValue
    waiting_hours: ReplayedValue
    saved_io_hours: ReplayedValue | None
    saved_hours: ReplayedValue | None


@dataclass(frozen=True)
class QueueWorth:
    """The worth of I/O nodes for a recorded queue.

    `ran_with` is the number of I/O nodes that all jobs had, None if each had a number of its own.
    `unit` is "core-hours", or "node-hours" where the cores of jobs are not known. `pool` is the
    smallest size whose gain is within 1 % of that of the largest; 0 if none gains surely, None
    without direct access to compare with. `unknown_share` is the share of the hours of jobs of
    which nothing is known.
    """

    system: str
    curves_of: str
    ran_with: int | None
    nodes: int
    unit: str
    jobs: int
    days: int
    hours: float
    arms: tuple[PoolArm, ...]
    pool: int | None
    unknown_share: float
    unknown: tuple[UnknownApplication, ...]


def worth_of(
    jobs: Sequence[JobIo],
    pools: Sequence[int],
    *,
    system: str,
    curves_of: str,
    ran_with: int | None,
    nodes: int | None = None,
    progress: Callable[[int], object] = lambda jobs: None,
) -> QueueWorth:
    """Replay a queue with each pool and each arm.

    Parameters
    ----------
    nodes : int, optional
        Compute nodes of the machine; by default as many as the jobs needed at once.
    progress : callable
        Called now and then with the number of jobs that started since the last call, over all
        replays.

    Raises
    ------
    InputError
        If nothing is known of any job, a job is larger than the machine, or a pool is smaller than
        all measured numbers.
    """
    curves = {each.curve for each in jobs if each.curve}
    if not curves:
        raise _nothing_known(jobs)
    of_cores = all(each.job.cores for each in jobs)
    hours = np.array([hours_of(each.job, of_cores=of_cores) for each in jobs])
    rates = hours / np.array([each.job.run_s for each in jobs])
    queue = [each.job for each in jobs]
    machine_nodes = nodes or _most_nodes_at_once(queue)
    check_sizes(queue, Machine(machine_nodes, 0))
    days = _days(np.array([each.job.submit_s for each in jobs]))
    numbers = [IoCurve("", None, dict.fromkeys(curve.io_nodes, 1.0)) for curve in curves]
    direct = None
    arms: list[PoolArm] = []
    for pool in sorted(set(pools)):
        machine = Machine(machine_nodes, pool, direct=True)
        check_pool(numbers, machine)
        replays = _Replays(known_queue(jobs, machine), days, rates, progress)
        if direct is None and all(0 in curve.io_nodes for curve in curves):
            direct = replays.measured(POLICIES["direct"], machine)
        found = {
            "direct": direct,
            "static": replays.measured(POLICIES["static"], machine),
            "ioncast": replays.measured(POLICIES["mckp"], machine),
            "best": replays.measured(_best(machine), replace(machine, pool=_ENDLESS)),
        }
        arms += [
            _arm(pool, arm, values, direct) for arm, values in found.items() if values is not None
        ]
    unknown = unknown_applications(jobs, of_cores=of_cores)
    total = float(hours.sum())
    return QueueWorth(
        *(system, curves_of, ran_with, machine_nodes),
        unit="core-hours" if of_cores else "node-hours",
        jobs=len(jobs),
        days=days.count,
        hours=total,
        arms=tuple(arms),
        pool=_smallest(arms),
        unknown_share=sum(each.hours for each in unknown) / total,
        unknown=tuple(unknown),
    )


def _nothing_known(jobs: Sequence[JobIo]) -> InputError:
    if all(each.reason == "no log" for each in jobs):
        return InputError(
            "no job of the queue has a log in the store",
            remedy="compare their numbers: JobIDRaw for array jobs, job_id in the store",
        )
    return InputError(
        "the I/O of no job of the queue can be predicted",
        remedy="`ioncast survey --db` tells how much of it the benchmarks cover",
    )


def replayed_jobs(jobs: int, pools: int) -> int:
    """Estimate the jobs of all replays: direct access once, and three arms with each pool."""
    return (jobs + REPLAYS * min(jobs, _JOBS_OF_A_REPLAY)) * (1 + 3 * pools)


@dataclass(frozen=True, eq=False)
class _Days:
    """The days of a queue: the day of each job, and the jobs of some days at random."""

    of_job: Ints
    count: int
    some_jobs: Ints


def _days(submit_s: Floats) -> _Days:
    day = ((submit_s - submit_s[0]) // _DAY_S).astype(np.int64)
    count = int(day[-1]) + 1
    enough = max(min(count, count * _JOBS_OF_A_REPLAY // len(day)), 1)
    some = np.random.default_rng(_SEED).permutation(np.unique(day))[:enough]
    return _Days(day, count, np.flatnonzero(np.isin(day, some)))


class _Replays:
    """Replays of a queue on machines with the same believed curves."""

    def __init__(
        self, queue: KnownQueue, days: _Days, rates: Floats, progress: Callable[[int], object]
    ) -> None:
        self._queue = queue
        self._days = days
        self._rates = rates
        self._progress = progress

    def measured(self, policy: Policy, machine: Machine) -> Floats:
        """Measure hours of I/O, core-hours and hours of waiting, shape (1 + REPLAYS, 3).

        The first row is of the whole queue with expected bandwidths. The others have its days drawn
        with replacement, times the factor that drawn bandwidths make for the jobs of some days.
        """
        days, work = self._days, self._queue.work
        arbiter = SimulatedArbiter(work.believed, machine) if policy.arbitrates else None

        def hours(jobs: Ints, draw: int | None) -> Floats:
            own = self._queue.drawn(draw, jobs)
            done = replay(own, machine, policy, self._progress, arbiter)
            run_s = done.end_s - done.start_s
            waiting_s = done.start_s - own.submit_s
            return np.array((done.io_s, self._rates[jobs] * run_s * 3600, waiting_s)) / 3600

        whole = hours(np.arange(len(work)), None)
        of_days = np.zeros((days.count, 3))
        np.add.at(of_days, days.of_job, whole.T)
        some = days.some_jobs
        expected = (whole if len(some) == len(work) else hours(some, None)).sum(axis=1)
        rows = [whole.sum(axis=1)]
        for draw in range(REPLAYS):
            chosen = np.random.default_rng([_SEED, draw]).integers(days.count, size=days.count)
            factors = hours(some, draw).sum(axis=1) / np.where(expected > 0, expected, np.inf)
            rows.append(of_days[chosen].sum(axis=0) * np.where(expected > 0, factors, 1.0))
        return np.array(rows)


def _best(machine: Machine) -> Policy:
    """A policy that knows the drawn bandwidths, and the size of a pool that is never short."""

    def asks(work: Workload, _: Machine) -> Ints:
        return POLICIES["best"].asks(replace(work, believed=work.curves), machine)

    return Policy("best", ARMS["best"], asks)


def _most_nodes_at_once(jobs: Sequence[QueuedJob]) -> int:
    started = [(job.start_s, job) for job in jobs if job.start_s is not None]
    times = [(start_s, job.nodes) for start_s, job in started]
    times += [(start_s + job.run_s, -job.nodes) for start_s, job in started]
    # A job that ends frees its nodes for one that starts at the same time.
    return max(accumulate(change for _, change in sorted(times)), default=0)


def _arm(pool: int, arm: str, measured: Floats, direct: Floats | None) -> PoolArm:
    """Summarise the replays of an arm; the first one has the expected bandwidths."""
    io_hours, hours, waiting = measured.T
    saved = None if direct is None else direct - measured
    return PoolArm(
        *(pool, arm),
        io_hours=_value(io_hours),
        hours=_value(hours),
        waiting_hours=_value(waiting),
        saved_io_hours=None if saved is None else _value(saved[:, 0]),
        saved_hours=None if saved is None else _value(saved[:, 1]),
    )


def _value(replays: Floats) -> ReplayedValue:
    low, high = np.percentile(replays[1:], _ENDS)
    return ReplayedValue(float(replays[0]), float(low), float(high))


def _smallest(arms: Sequence[PoolArm]) -> int | None:
    """Find the smallest pool that gains about as much as the largest; 0 if that gains nothing."""
    gains = [(arm.pool, arm.saved_hours) for arm in arms if arm.arm == "ioncast"]
    _, most = gains[-1]
    if most is None:
        return None
    if most.value <= 0 or most.low <= 0:
        return 0
    return next(pool for pool, gain in gains if gain and gain.value >= _NEAR * most.value)
