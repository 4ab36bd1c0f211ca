"""The usual bandwidth of runs: the median of other jobs of the same variant of an application.

A variant is a program of a user with a number of processes and of compute nodes, on a system, that
moves as many bytes. Source: S. L. Harrington, "Diagnosing Parallel I/O Bottlenecks in HPC
Applications" (slowdown ratio); it has no formula of normal bandwidth, so the numbers are ioncast's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ioncast.warehouse.usual_values import FEWEST_JOBS, LIKE_BYTES
from ioncast_base.limits import FASTEST_MIB_S, SLOWEST_MIB_S

if TYPE_CHECKING:
    # The service uses this module without Arrow.
    import pyarrow as pa

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DAY_US = 86_400_000_000
# A slow run takes at least so many times the usual time, and deviates by so many deviations.
SLOW_RATIO = 2.0
_DEVIATIONS = 3.0
# The median absolute deviation of a normal distribution times this is its standard deviation.
_OF_MAD = 1.4826
# Sizes that differ by less than a hundredth are one: a median for each run would take minutes.
_SIZES = 64
_VARIANT = ("system", "user_id", "program", "processes")


@dataclass(frozen=True, eq=False)
class Bandwidths:
    """Bandwidths of runs, sorted by variant and bytes; each array has an entry for each run.

    Attributes
    ----------
    variant, job : ndarray of int
        Numbers of variants, and of jobs in all variants; a run without job id is a job.
    moved_bytes, log_mib_s : ndarray of float
        Bytes, and the natural logarithm of the bandwidth.
    """

    variant: Ints
    job: Ints
    moved_bytes: Floats
    log_mib_s: Floats

    def __len__(self) -> int:
        return len(self.variant)


@dataclass(frozen=True, eq=False)
class Runs(Bandwidths):
    """Runs of a store with a bandwidth.

    Attributes
    ----------
    rows : pyarrow.Table
        Their rows of the query `variant-runs`, in the same order.
    day : ndarray of float
        Start in days since 1970 (UTC); NaN if it is not known.
    """

    rows: pa.Table
    day: Floats

    def column(self, name: str) -> Floats:
        """Read a column of numbers; NaN where the number is not known."""
        return numbers(self.rows, name)


@dataclass(frozen=True, eq=False)
class Normals:
    """The usual bandwidth of each of `Runs`, of jobs whose bytes are within a factor of 2.

    Attributes
    ----------
    first, end : ndarray of int
        The runs that it is compared with, itself among them.
    jobs : ndarray of int
        The number of other jobs.
    log_mib_s : ndarray of float
        The logarithm of the median bandwidth of other jobs; NaN with fewer than 5.
    spread : ndarray of float
        Standard deviation of the logarithms of these bandwidths, by their median absolute
        deviation.
    log_ratio : ndarray of float
        The logarithm of the slowdown ratio: usual by own bandwidth.
    """

    first: Ints
    end: Ints
    jobs: Ints
    log_mib_s: Floats
    spread: Floats
    log_ratio: Floats

    @cached_property
    def is_slow(self) -> Bools:
        """Whether each run is slow; false where nothing is known."""
        return is_slow(self.log_ratio, self.spread)


def is_slow(log_ratio: Floats, spread: Floats) -> Bools:
    """Tell which slowdown ratios are large, and unusual for jobs that scatter so."""
    slow: Bools = (log_ratio >= np.log(SLOW_RATIO)) & (log_ratio > _DEVIATIONS * spread)
    return slow


def runs_of(rows: pa.Table) -> Runs:
    """Read rows of the query `variant-runs`; runs without program, bytes or bandwidth are left out.

    Compute nodes belong to the variant where all runs of the program name them.
    """
    bandwidth, moved = numbers(rows, "bandwidth_mib_s"), numbers(rows, "moved_bytes")
    is_sound = (bandwidth >= SLOWEST_MIB_S) & (bandwidth <= FASTEST_MIB_S) & (moved > 0)
    for name in ("program", "processes"):
        is_sound &= ~rows[name].is_null().to_numpy()
    rows = rows.filter(is_sound)
    variant = _numbers(rows, _VARIANT)
    nodes, with_nodes = rows["compute_nodes"], _numbers(rows, (*_VARIANT, "compute_nodes"))
    lacks_nodes = np.bincount(variant, nodes.is_null().to_numpy()) > 0
    # Numbers of the two kinds must differ.
    variant = np.where(lacks_nodes[variant], variant, len(rows) + with_nodes)
    order = np.lexsort((moved[is_sound], variant))
    rows = rows.take(order)
    job = _numbers(rows, ("system", "job_id"))
    has_no_id = rows["job_id"].is_null().to_numpy()
    job = np.where(has_no_id, len(rows) + np.arange(len(rows)), job)
    return Runs(
        variant=np.unique(variant[order], return_inverse=True)[1],
        job=np.unique(job, return_inverse=True)[1],
        moved_bytes=moved[is_sound][order],
        log_mib_s=np.log(bandwidth[is_sound][order]),
        rows=rows,
        day=numbers(rows, "start_us") / DAY_US,
    )


def normals_of(runs: Bandwidths) -> Normals:
    """Find the usual bandwidth of each run."""
    size = len(runs)
    first, end, jobs = np.zeros((3, size), np.int64)
    usual, spread = np.full((2, size), np.nan)
    edges = np.append(np.flatnonzero(np.diff(runs.variant, prepend=-1)), size)
    for begin, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        sizes = np.round(_SIZES * np.log2(runs.moved_bytes[begin:stop]))
        reach = _SIZES * np.log2(LIKE_BYTES)
        first[begin:stop] = begin + np.searchsorted(sizes, sizes - reach, "left")
        end[begin:stop] = begin + np.searchsorted(sizes, sizes + reach, "right")
    # Runs of a size are compared with the same runs.
    compared, window = np.unique(np.stack((first, end)), axis=1, return_inverse=True)
    by_window = (
        np.split(
            np.argsort(window.ravel(), kind="stable"), np.cumsum(np.bincount(window.ravel()))[:-1]
        )
        if size
        else []
    )
    for (begin, stop), members in zip(compared.T.tolist(), by_window, strict=True):
        ids, place = np.unique(runs.job[begin:stop], return_inverse=True)
        jobs[members] = len(ids) - 1
        if len(ids) <= FEWEST_JOBS:
            continue
        of_jobs = medians(runs.log_mib_s[begin:stop], place)
        usual[members] = _medians_of_others(of_jobs, place[members - begin])
        middle = np.median(of_jobs)
        spread[members] = _OF_MAD * np.median(np.abs(of_jobs - middle))
    return Normals(first, end, jobs, usual, spread, usual - runs.log_mib_s)


def others_of(runs: Runs, normals: Normals, place: int) -> Ints:
    """List the runs of other jobs that a run is compared with."""
    compared = np.arange(normals.first[place], normals.end[place])
    others: Ints = compared[runs.job[compared] != runs.job[place]]
    return others


def numbers(rows: pa.Table, name: str) -> Floats:
    """Read a column of numbers; NaN where the number is not known."""
    values: Floats = rows[name].cast("float64", safe=False).to_numpy().astype(np.float64)
    return values


def medians(values: Floats, group: Ints) -> Floats:
    """Find the median of the values of each group, from 0 on; each has at least one."""
    order = np.lexsort((values, group))
    count = np.bincount(group)
    first = np.cumsum(count) - count
    low, high = order[first + (count - 1) // 2], order[first + count // 2]
    found: Floats = (values[low] + values[high]) / 2
    return found


def _medians_of_others(values: Floats, left_out: Ints) -> Floats:
    """Find the median of all values but one, for each that is left out."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    ordered, left = values[order], rank[left_out]
    count = len(values) - 1
    middle = [np.where(at < left, at, at + 1) for at in ((count - 1) // 2, count // 2)]
    found: Floats = (ordered[middle[0]] + ordered[middle[1]]) / 2
    return found


def _numbers(rows: pa.Table, names: tuple[str, ...]) -> Ints:
    """Number the different values of some columns together; unknown is a value."""
    number: Any = np.zeros(len(rows), np.int64)
    for name in names:
        encoded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        if hasattr(encoded, "chunks"):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        number = np.unique(number * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
    found: Ints = number.astype(np.int64)
    return found
