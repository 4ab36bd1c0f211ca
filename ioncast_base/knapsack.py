"""Divides a pool of I/O nodes among several jobs, by the jobs' curves.

This is the multiple-choice knapsack problem. Dynamic programming over the jobs solves it exactly,
with one row of numpy arithmetic for each choice of a job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.limits import FASTEST_MIB_S, SLOWEST_MIB_S
from ioncast_base.wording import counted

WeightName = Literal["given", "none", "nodes"]
WEIGHTS: tuple[WeightName, ...] = get_args(WeightName)
ObjectiveName = Literal["sum", "proportional"]
OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)

LEAST_WEIGHT, MOST_WEIGHT = 1e-12, 1e12
# The sum of all values, at most. Rounding adds at most 1 for each I/O node and pair of jobs, so for
# problems of at most this size the sum stays in the range of int64.
_TOTAL = 2.0**60
# Memory of the table that tells the choices of the best solution.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class JobCurve:
    """A job, with its expected bandwidth for each number of I/O nodes.

    Attributes
    ----------
    id, nodes : str and int
        An id of this job alone, and the number of its compute nodes.
    curve : mapping of int to float
        Expected MiB/s by number of I/O nodes; 0 is direct access. The job gets one of these
        numbers. The curve of a fixed job may be empty.
    weight : float
        The value of a MiB/s of this job, compared with other jobs.
    is_fixed : bool
        Whether the job runs and therefore keeps its `current` I/O nodes.
    """

    id: str
    nodes: int
    curve: Mapping[int, float]
    weight: float = 1.0
    current: int | None = None
    is_fixed: bool = False

    def __post_init__(self) -> None:
        where = f"job {self.id}"
        _check_whole("nodes", self.nodes, 1, where)
        _check_between("weight", self.weight, LEAST_WEIGHT, MOST_WEIGHT, where)
        for io_nodes, bandwidth in self.curve.items():
            _check_whole("curve", io_nodes, 0, where)
            _check_between(f"curve.{io_nodes}", bandwidth, SLOWEST_MIB_S, FASTEST_MIB_S, where)
        if self.current is not None:
            _check_whole("current", self.current, 0, where)
        if self.is_fixed and self.current is None:
            raise InputError(
                "the job is fixed, but `current` is missing",
                where=where,
                remedy="give the number of I/O nodes that it has",
            )
        if not self.is_fixed and not self.curve:
            raise InputError(
                "curve: it is empty, so the job has no choice",
                where=where,
                remedy="leave the job out, or give it as fixed",
            )


class Share(NamedTuple):
    """The I/O nodes that one job gets (0: direct access), and its expected bandwidth.

    A job waits if it needs I/O nodes and too few are left: `io_nodes` is None, the bandwidth 0.
    The bandwidth is None for a fixed job whose curve does not have its current number.
    """

    id: str
    io_nodes: int | None
    expected_mib_s: float | None


@dataclass(frozen=True)
class Allocation:
    """The I/O nodes that all jobs get; the shares are in the order of the jobs.

    `weighted_mib_s` is the sum of all known bandwidths, each times the job's weight. `of_own_best`
    is the weighted mean share of its own highest bandwidth that a job gets, over the jobs that are
    not fixed; None if all are.
    """

    pool: int
    shares: tuple[Share, ...]
    weighted_mib_s: float
    of_own_best: float | None

    @property
    def expected_mib_s(self) -> float:
        """The bandwidth of all jobs together: the sum of all known bandwidths."""
        return math.fsum(share.expected_mib_s or 0.0 for share in self.shares)

    @property
    def io_nodes(self) -> int:
        """The number of I/O nodes that all jobs together have."""
        return sum(share.io_nodes or 0 for share in self.shares)


def allocate(
    jobs: Sequence[JobCurve],
    pool: int,
    *,
    objective: ObjectiveName = "sum",
    minimum_gain: float = 0.0,
) -> Allocation:
    """Divide a pool of I/O nodes among jobs.

    No job waits for the others: if all jobs can have their smallest number, they get at least that;
    otherwise as many jobs as possible. Among such divisions the one with the highest sum is found,
    exactly; of several the one with the fewest I/O nodes, and the same one each time.

    Two jobs with the same id, fixed jobs with more I/O nodes than the pool, and a division that
    would take more than a GiB of memory are an InputError.

    Parameters
    ----------
    pool : int
        The number of I/O nodes, including those of fixed jobs, which keep them.
    objective : str
        "sum" adds up bandwidths; "proportional" adds up the shares that these are of each job's
        own highest bandwidth, so slow jobs count as much as fast ones.
    minimum_gain : float
        From 0 to 1: a job leaves its current number of I/O nodes only if another job needs them
        to run, or if the sum grows by more than this share of the job's current part of it. So a
        division stays as it is when it is repeated.

    References
    ----------
    .. [1] J. L. Bez et al.: "Arbitration policies for on-demand user-level I/O forwarding on HPC
       platforms", IPDPS 2021: the problem.
    .. [2] H. Kellerer, U. Pferschy, D. Pisinger: Knapsack Problems, Springer 2004, chapter 11:
       dynamic programming and dominated choices.

    Examples
    --------
    >>> a = JobCurve("a", 4, {0: 100.0, 2: 400.0})
    >>> b = JobCurve("b", 12, {0: 300.0, 2: 310.0, 3: 320.0})
    >>> [share.io_nodes for share in allocate([a, b], 4).shares]
    [2, 2]
    """
    _check_whole("pool", pool, 0)
    _check_between("minimum gain", minimum_gain, 0, 1)
    if objective not in OBJECTIVES:
        raise InputError(
            f"there is no objective {objective!r}", remedy=f"give one of {', '.join(OBJECTIVES)}"
        )
    _check_ids(jobs)
    movable = [job for job in jobs if not job.is_fixed]
    worths = _worths(movable, objective)
    chosen = iter(_best_division(movable, _free(jobs, pool), worths, minimum_gain))
    shares = tuple(_kept(job) if job.is_fixed else Share(job.id, *next(chosen)) for job in jobs)
    weighted_mib_s = math.fsum(
        job.weight * (share.expected_mib_s or 0.0) for job, share in zip(jobs, shares, strict=True)
    )
    return Allocation(pool, shares, weighted_mib_s, _of_own_best(jobs, shares))


def weighted(jobs: Iterable[JobCurve], by: WeightName) -> list[JobCurve]:
    """Weigh jobs as "given", equally ("none"), or by their numbers of compute nodes ("nodes")."""
    if by == "given":
        return list(jobs)
    return [replace(job, weight=float(job.nodes) if by == "nodes" else 1.0) for job in jobs]


def _worths(jobs: Iterable[JobCurve], objective: ObjectiveName) -> list[float]:
    """Compute the worth of a MiB/s for each job."""
    if objective == "sum":
        return [job.weight for job in jobs]
    return [job.weight / max(job.curve.values()) for job in jobs]


def _of_own_best(jobs: Sequence[JobCurve], shares: Sequence[Share]) -> float | None:
    sharing = [(job, share) for job, share in zip(jobs, shares, strict=True) if not job.is_fixed]
    if not sharing:
        return None
    worths = _worths((job for job, _ in sharing), "proportional")
    worth = math.fsum(
        worth * (share.expected_mib_s or 0.0)
        for worth, (_, share) in zip(worths, sharing, strict=True)
    )
    return worth / math.fsum(job.weight for job, _ in sharing)


class Choice(NamedTuple):
    """A number of I/O nodes that a job can get; with None the job waits."""

    io_nodes: int | None
    mib_s: float

    @property
    def taken(self) -> int:
        """The number of I/O nodes; 0 for a job that waits."""
        return self.io_nodes or 0


def possible_choices(job: JobCurve, most: int) -> list[Choice]:
    """List a job's choices with at most `most` I/O nodes, the fewest first; never empty."""
    # A job that cannot have direct access can wait.
    nothing = [] if 0 in job.curve else [Choice(None, 0.0)]
    return [*nothing, *(Choice(int(n), job.curve[n]) for n in sorted(job.curve) if n <= most)]


def _best_division(
    jobs: Sequence[JobCurve], free: int, worths: Sequence[float], minimum_gain: float
) -> list[Choice]:
    """Maximise the worth of all bandwidths; `worths` are those of a MiB/s of each job."""
    options = [possible_choices(job, free) for job in jobs]
    values = _served_first(options, _in_whole_numbers(jobs, options, free, worths, minimum_gain))
    kept = [
        _undominated(of_job, of_values) for of_job, of_values in zip(options, values, strict=True)
    ]
    places = _knapsack(
        [[choice.taken for choice, _ in of_job] for of_job in kept],
        [[value for _, value in of_job] for of_job in kept],
        free,
    )
    return [of_job[place][0] for of_job, place in zip(kept, places, strict=True)]


def _in_whole_numbers(
    jobs: Sequence[JobCurve],
    options: Sequence[Sequence[Choice]],
    free: int,
    worths: Sequence[float],
    minimum_gain: float,
) -> list[list[int]]:
    """Compute the values of all choices as whole numbers, so that sums and ties are exact.

    An I/O node costs 1, less than the least difference between two bandwidths. So of equal sums
    of bandwidths the one with the fewest I/O nodes has the highest value.
    """
    staying = 1 + minimum_gain
    most = staying * math.fsum(
        worth * max(job.curve.values()) for worth, job in zip(worths, jobs, strict=True)
    )
    # `_served_first` adds more than this total once for each job.
    parts = (free + 1) * (len(jobs) + 1)
    # A power of two, so that scaling rounds no bandwidth, and equal sums stay equal.
    unit = 2.0 ** math.floor(math.log2(_TOTAL / parts / most)) if most else 0.0

    def value(job: JobCurve, worth_of_a_mib_s: float, choice: Choice) -> int:
        if choice.io_nodes is None:
            return 0
        factor = staying if choice.io_nodes == job.current else 1.0
        # However small the bandwidth is compared with other jobs, running is better than waiting.
        worth = max(round(worth_of_a_mib_s * choice.mib_s * factor * unit), 1)
        return worth * (free + 1) - choice.taken

    return [
        [value(job, worth, choice) for choice in of_job]
        for job, worth, of_job in zip(jobs, worths, options, strict=True)
    ]


def _served_first(
    options: Sequence[Sequence[Choice]], values: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Make one job that does not wait worth more than all bandwidths together."""
    served = 1 + sum(max(of_job) for of_job in values)
    return [
        [
            value if choice.io_nodes is None else value + served
            for choice, value in zip(of_job, of_values, strict=True)
        ]
        for of_job, of_values in zip(options, values, strict=True)
    ]


def _undominated(options: Sequence[Choice], values: Sequence[int]) -> list[tuple[Choice, int]]:
    """Keep the choices whose value is higher than that of any choice with fewer I/O nodes."""
    kept = [(options[0], values[0])]
    for choice, value in zip(options, values, strict=True):
        if value > kept[-1][1]:
            kept.append((choice, value))
    return kept


def _knapsack(
    costs: Sequence[Sequence[int]], values: Sequence[Sequence[int]], free: int
) -> list[int]:
    """Choose one place for each job: the highest sum of values whose costs are at most `free`.

    The costs and the values of each job ascend. All first choices together cost at most `free`.
    """
    if sum(of_job[-1] for of_job in costs) <= free:
        return [len(of_job) - 1 for of_job in costs]
    # Every job gets its smallest choice first; only the remaining I/O nodes are divided.
    room = free - sum(of_job[0] for of_job in costs)
    extra = [[cost - of_job[0] for cost in of_job] for of_job in costs]
    kind = np.min_scalar_type(max(map(len, costs)))
    is_large = len(costs) * (room + 1) * kind.itemsize > _MOST_BYTES
    if is_large or len(costs) ** 2 * (free + 1) > _TOTAL:
        raise InputError(
            f"{len(costs)} jobs and {free} I/O nodes are too many to be divided at once",
            remedy="divide them among fewer jobs",
        )
    # chosen[job, n] is the job's place if it and all jobs before it have n I/O nodes together.
    chosen = np.zeros((len(costs), room + 1), kind)
    best = np.zeros(room + 1, np.int64)
    for of_job, worth, row in zip(extra, values, chosen, strict=True):
        best = _with_one_more(best, of_job, worth, row)
    places = []
    for of_job, row in zip(reversed(extra), chosen[::-1], strict=True):
        places.append(int(row[room]))
        room -= of_job[places[-1]]
    return places[::-1]


def _with_one_more(
    best: NDArray[np.int64],
    costs: Sequence[int],
    values: Sequence[int],
    chosen: NDArray[np.unsignedinteger],
) -> NDArray[np.int64]:
    """Add a job to the highest values by cost, and write the job's choices into `chosen`."""
    highest = best + values[0]
    for place, (cost, value) in enumerate(zip(costs[1:], values[1:], strict=True), start=1):
        if cost >= len(best):
            break
        other = best[: len(best) - cost] + value
        so_far = highest[cost:]
        is_better = other > so_far
        np.copyto(so_far, other, where=is_better)
        chosen[cost:][is_better] = place
    return highest


def _kept(job: JobCurve) -> Share:
    """Return the current I/O nodes of a fixed job."""
    assert job.current is not None  # noqa: S101
    return Share(job.id, job.current, job.curve.get(job.current))


def _free(jobs: Iterable[JobCurve], pool: int) -> int:
    """Count the I/O nodes that fixed jobs leave."""
    held = sum(job.current or 0 for job in jobs if job.is_fixed)
    if held > pool:
        raise InputError(
            f"fixed jobs have {counted(held, 'I/O node')}, more than the pool, which has {pool}",
            where="pool",
            remedy="give the size of the whole pool, or leave out jobs that have ended",
        )
    return int(pool - held)


def _check_ids(jobs: Iterable[JobCurve]) -> None:
    seen = set()
    for job in jobs:
        if job.id in seen:
            raise InputError("two jobs have this id", where=f"job {job.id}")
        seen.add(job.id)


def _check_whole(name: str, number: object, least: int, where: str | None = None) -> None:
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
        raise InputError(
            f"{name}: {number!r} is not a whole number of at least {least}", where=where
        )


def _check_between(
    name: str, number: object, least: float, most: float, where: str | None = None
) -> None:
    if (
        not isinstance(number, Real)
        or isinstance(number, bool)
        or not least <= float(number) <= most
    ):
        raise InputError(f"{name}: {number!r} is not from {least:g} to {most:g}", where=where)
