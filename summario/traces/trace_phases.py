"""Phases of a trace: when the processes did I/O, which of them ended last, and which lagged behind.

Extraction finds phases of one kind of I/O in counters. A trace has every request, so here a phase
is a time in which the processes use one api with pauses that are short, for this program.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.phases.streams import Floats, Ints
from summario.reading.operations import Operations

# With fewer gaps, the mean and the standard deviation together are at least the longest one.
_FEWEST_GAPS = 3
# The median of fewer ranks tells nothing about the others.
_FEWEST_RANKS = 3
_DEVIATIONS = 3
_CLOCK_SKEW_SECONDS = 0.02


@dataclass(frozen=True)
class RankSums:
    """The ranks of one phase, in ascending order; each array has an entry for each rank.

    Attributes
    ----------
    rank, requests, bytes : ndarray of int64
        The process, the number of its requests, and the bytes that they moved.
    busy_seconds : ndarray of float64
        The durations of the rank's requests, added up.
    end_seconds : ndarray of float64
        The end of the rank's last request, in seconds since the job's start.
    """

    rank: Ints
    requests: Ints
    bytes: Ints
    busy_seconds: Floats
    end_seconds: Floats


@dataclass(frozen=True)
class TracePhase:
    """A time in which processes used one api without a long pause.

    Times are seconds since the job's start.

    Attributes
    ----------
    api : str
        "POSIX" or "MPIIO".
    operation : str
        "read", "write" or "read&write".
    start_seconds, end_seconds : float
        The first start and the last end of a request.
    bytes, requests : int
        The moved bytes, and the number of requests.
    ranks : RankSums
        The ranks that took part.
    slowest_rank, fastest_rank : int
        The rank whose last request ended last, and the one whose last request ended first; of
        several the lowest.
    stragglers : tuple of int
        Ranks that ended much later than the others.
    lateness : float
        The time from the median of the ranks' ends to the latest, as a share of the duration.
    """

    api: Api
    operation: str
    start_seconds: float
    end_seconds: float
    bytes: int
    requests: int
    ranks: RankSums
    slowest_rank: int
    fastest_rank: int
    stragglers: tuple[int, ...]
    lateness: float

    @property
    def duration_seconds(self) -> float:
        """Seconds from the first start to the last end."""
        return self.end_seconds - self.start_seconds


def trace_phases(
    operations: Operations,
    api: Api,
    *,
    time_distance: float = 1.0,
    shortest_pause: float = 0.1,
    straggler_share: float = 0.15,
) -> list[TracePhase]:
    """Find the phases of one api in a trace.

    Requests that overlap or touch, of any rank, form one interval. A gap between two intervals
    that is longer than a threshold separates phases. The threshold is the mean of all gaps plus
    their standard deviation, at least `shortest_pause` and at most `time_distance`. Where this
    tells nothing, because there are at most two gaps or because the gaps are alike (their standard
    deviation is at most half of their mean), the threshold is `time_distance`.

    Parameters
    ----------
    operations : Operations
        The requests, of one file or of several.
    api : str
        "POSIX" or "MPIIO".
    time_distance : float
        A longer gap, in seconds, always ends a phase.
    shortest_pause : float
        A gap of at most so many seconds never ends a phase.
    straggler_share : float
        A straggler ends later than the median rank by more than this share of the phase, three
        median absolute deviations and 20 ms, by which the clocks of compute nodes may differ.

    Returns
    -------
    list of TracePhase
        The phases in order.

    References
    ----------
    H. Ather, "DRISHTI: Guiding End-Users in the I/O Optimization Journey", section III-D, 2022.
    The threshold for alike gaps and the rule for stragglers are ioncast's own.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> from summario.reading.operations import operations_of
    >>> log = read_log("tests/summario/fixtures/reopen-same-5x-dxt.darshan")
    >>> [(p.operation, p.bytes, p.requests) for p in trace_phases(operations_of(log), "POSIX")]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('write', 50331648, 96), ('write', 50331648, 96), ('write', 50331648, 96),
     ('write', 50331648, 96), ('write', 50331648, 96)]
    """
    operations = operations.take(operations.api == APIS.index(api))
    if not len(operations):
        return []
    operations = operations.take(np.argsort(operations.start_seconds, kind="stable"))
    edges = _edges(operations, time_distance, shortest_pause)
    return [
        _phase(api, operations.take(slice(*pair)), straggler_share)
        for pair in itertools.pairwise(edges)
    ]


def are_too_many(phases: Sequence[TracePhase], most: int = 100) -> bool:
    """Tell whether a program does its I/O in too many phases.

    There are more than `most`, and the mean pause between them is shorter than the mean phase.

    Parameters
    ----------
    phases : sequence of TracePhase
        The phases of one api, in order.
    most : int
        So many phases are never too many.
    """
    if len(phases) <= most:
        return False
    durations = sum(phase.duration_seconds for phase in phases)
    pauses = phases[-1].end_seconds - phases[0].start_seconds - durations
    return pauses / (len(phases) - 1) < durations / len(phases)


def _edges(operations: Operations, time_distance: float, shortest_pause: float) -> list[int]:
    """Find the first row of each phase, and the number of rows; the rows are sorted by start."""
    start = operations.start_seconds
    latest = np.maximum.accumulate(operations.end_seconds)
    gap = start[1:] - latest[:-1]
    threshold = _threshold(gap[gap > 0], time_distance, shortest_pause)
    return [0, *(np.flatnonzero(gap > threshold) + 1).tolist(), len(operations)]


def _threshold(gaps: Floats, time_distance: float, shortest_pause: float) -> float:
    if len(gaps) < _FEWEST_GAPS or gaps.std() <= gaps.mean() / 2:
        return time_distance
    return min(max(float(gaps.mean() + gaps.std()), shortest_pause), time_distance)


def _phase(api: Api, requests: Operations, straggler_share: float) -> TracePhase:
    ranks = _rank_sums(requests)
    start, end = float(requests.start_seconds[0]), float(requests.end_seconds.max())
    used = np.bincount(requests.operation, minlength=len(OPERATIONS)) > 0
    middle = np.median(ranks.end_seconds)
    return TracePhase(
        api=api,
        operation="&".join(name for name, is_used in zip(OPERATIONS, used, strict=True) if is_used),
        start_seconds=start,
        end_seconds=end,
        bytes=int(requests.length.sum()),
        requests=len(requests),
        ranks=ranks,
        slowest_rank=int(ranks.rank[np.argmax(ranks.end_seconds)]),
        fastest_rank=int(ranks.rank[np.argmin(ranks.end_seconds)]),
        stragglers=_stragglers(ranks, straggler_share * (end - start)),
        lateness=float(end - middle) / (end - start) if end > start else 0.0,
    )


def _rank_sums(requests: Operations) -> RankSums:
    order = np.argsort(requests.rank, kind="stable")
    first = np.flatnonzero(np.diff(requests.rank[order], prepend=-1))
    busy = requests.end_seconds - requests.start_seconds
    return RankSums(
        rank=requests.rank[order][first],
        requests=np.diff(np.append(first, len(order))),
        bytes=np.add.reduceat(requests.length[order], first),
        busy_seconds=np.add.reduceat(busy[order], first),
        end_seconds=np.maximum.reduceat(requests.end_seconds[order], first),
    )


def _stragglers(ranks: RankSums, least_seconds: float) -> tuple[int, ...]:
    """List the ranks that end much later than the median, at least `least_seconds` later."""
    if len(ranks.rank) < _FEWEST_RANKS:
        return ()
    late = ranks.end_seconds - np.median(ranks.end_seconds)
    deviation = float(np.median(np.abs(late)))
    least = max(least_seconds, _DEVIATIONS * deviation, _CLOCK_SKEW_SECONDS)
    return tuple(ranks.rank[late > least].tolist())
