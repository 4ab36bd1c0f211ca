"""Phases of a trace: when the processes did I/O, which of them ended last, and which lagged behind.

A phase is a time in which the processes use one api with pauses that are short for this program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.phases.streams import Floats, Indices, Ints, changes
from summario.reading.operations import Operations

# With fewer gaps, the mean and the standard deviation together are at least the longest one.
_FEWEST_GAPS = 3
# The median of fewer ranks tells nothing about the others.
_FEWEST_RANKS = 3
_DEVIATIONS = 3
_CLOCK_SKEW_SECONDS = 0.02


@dataclass(frozen=True)
class RankSums:
    """The ranks of a phase, in ascending order; each array has an entry for each rank.

    `busy_seconds` adds up the durations of the rank's requests. `end_seconds`, since the job's
    start, is the end of the last one.
    """

    rank: Ints
    requests: Ints
    bytes: Ints
    busy_seconds: Floats
    end_seconds: Floats

    def take(self, rows: slice) -> RankSums:
        """Select ranks."""
        return RankSums(
            self.rank[rows],
            self.requests[rows],
            self.bytes[rows],
            self.busy_seconds[rows],
            self.end_seconds[rows],
        )


@dataclass(frozen=True)
class TracePhase:
    """A time (seconds since the job's start) in which processes used one api without a long pause.

    Of ranks that end last, or first, at the same time, the lowest is the slowest, or fastest.
    `lateness` is the time from the ranks' median end to the latest, as a share of the duration.
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


@dataclass(frozen=True, eq=False)
class TracePhases:
    """The phases of one api in order, as columns; iterating yields each as a `TracePhase`.

    `first_operation` and `last_operation` are the smallest and the largest index into `OPERATIONS`
    of a phase's requests. `first_row` has the row in `ranks` with which each phase begins, then the
    number of rows. `is_straggler` is for each rank of `ranks`.
    """

    api: Api
    start_seconds: Floats
    end_seconds: Floats
    lateness: Floats
    bytes: Ints
    requests: Ints
    slowest_rank: Ints
    fastest_rank: Ints
    first_operation: Indices
    last_operation: Indices
    ranks: RankSums
    is_straggler: NDArray[np.bool_]
    first_row: Ints

    def __len__(self) -> int:
        return len(self.bytes)

    def __iter__(self) -> Iterator[TracePhase]:
        return map(self.phase, range(len(self)))

    @property
    def durations_seconds(self) -> Floats:
        """Seconds from the first start to the last end of each phase."""
        return self.end_seconds - self.start_seconds

    @property
    def pauses_seconds(self) -> Floats:
        """Seconds between each phase and the next one."""
        return self.start_seconds[1:] - self.end_seconds[:-1]

    @property
    def with_stragglers(self) -> Ints:
        """The numbers of the phases with stragglers; the first phase is 0."""
        rows = np.flatnonzero(self.is_straggler)
        found: Ints = np.unique(np.searchsorted(self.first_row, rows, side="right") - 1)
        return found

    def phase(self, index: int) -> TracePhase:
        """Make the object of one phase."""
        rows = slice(int(self.first_row[index]), int(self.first_row[index + 1]))
        used = range(int(self.first_operation[index]), int(self.last_operation[index]) + 1)
        ranks = self.ranks.take(rows)
        return TracePhase(
            api=self.api,
            operation="&".join(OPERATIONS[operation] for operation in used),
            start_seconds=float(self.start_seconds[index]),
            end_seconds=float(self.end_seconds[index]),
            bytes=int(self.bytes[index]),
            requests=int(self.requests[index]),
            ranks=ranks,
            slowest_rank=int(self.slowest_rank[index]),
            fastest_rank=int(self.fastest_rank[index]),
            stragglers=tuple(ranks.rank[self.is_straggler[rows]].tolist()),
            lateness=float(self.lateness[index]),
        )


def trace_phases(
    operations: Operations,
    api: Api,
    *,
    time_distance: float = 1.0,
    shortest_pause: float = 0.1,
    straggler_share: float = 0.15,
) -> TracePhases:
    """Find the phases of one api in a trace.

    Requests that overlap or touch, of any rank, form one interval. A gap between two intervals
    that is longer than a threshold separates phases. The threshold is the mean of all gaps plus
    their standard deviation, at least `shortest_pause` and at most `time_distance`. Where this
    tells nothing, because there are at most two gaps or because the gaps are alike (their standard
    deviation is at most half of their mean), the threshold is `time_distance`.

    Parameters
    ----------
    time_distance, shortest_pause : float
        A longer gap, in seconds, always ends a phase; a gap of at most so many seconds never does.
    straggler_share : float
        A straggler ends later than the median rank by more than this share of the phase, three
        median absolute deviations and 20 ms, by which the clocks of compute nodes may differ.

    References
    ----------
    H. Ather, "DRISHTI: Guiding End-Users in the I/O Optimization Journey", section III-D, 2022.
    The threshold for alike gaps and the rule for stragglers are ioncast's own.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> from summario.reading.operations import operations_of
    >>> log = read_log("tests/summario/fixtures/reopen-same-5x-dxt.darshan")
    >>> [(p.bytes, p.requests) for p in trace_phases(operations_of(log), "POSIX")][:2]
    [(50331648, 96), (50331648, 96)]
    """
    operations = operations.take(operations.api == APIS.index(api))
    operations = operations.take(np.argsort(operations.start_seconds, kind="stable"))
    first = _first_requests(operations, time_distance, shortest_pause)
    requests = np.diff(np.append(first, len(operations)))
    phase = np.repeat(np.arange(len(first)), requests)
    ranks, first_row = _rank_sums(operations, phase)
    start = operations.start_seconds[first]
    end = np.maximum.reduceat(operations.end_seconds, first)
    duration = end - start
    middle, is_straggler = _stragglers(ranks, first_row, straggler_share * duration)
    return TracePhases(
        api=api,
        start_seconds=start,
        end_seconds=end,
        lateness=np.where(duration > 0, end - middle, 0) / np.where(duration > 0, duration, 1),
        bytes=np.add.reduceat(operations.length, first),
        requests=requests,
        slowest_rank=ranks.rank[_rows_of(ranks.end_seconds, np.maximum, first_row)],
        fastest_rank=ranks.rank[_rows_of(ranks.end_seconds, np.minimum, first_row)],
        first_operation=np.minimum.reduceat(operations.operation, first),
        last_operation=np.maximum.reduceat(operations.operation, first),
        ranks=ranks,
        is_straggler=is_straggler,
        first_row=first_row,
    )


def are_too_many(phases: TracePhases, most: int = 100) -> bool:
    """Whether there are more than `most` phases, with pauses shorter than phases in the mean."""
    if len(phases) <= max(most, 1):
        return False
    return bool(phases.pauses_seconds.mean() < phases.durations_seconds.mean())


def _first_requests(operations: Operations, time_distance: float, shortest_pause: float) -> Ints:
    """Find the first row of each phase; the rows are sorted by start."""
    start = operations.start_seconds
    latest = np.maximum.accumulate(operations.end_seconds)
    gap = start[1:] - latest[:-1]
    threshold = _threshold(gap[gap > 0], time_distance, shortest_pause)
    begins = np.ones(len(operations), bool)
    begins[1:] = gap > threshold
    return np.flatnonzero(begins)


def _threshold(gaps: Floats, time_distance: float, shortest_pause: float) -> float:
    if len(gaps) < _FEWEST_GAPS or gaps.std() <= gaps.mean() / 2:
        return time_distance
    return min(max(float(gaps.mean() + gaps.std()), shortest_pause), time_distance)


def _rank_sums(operations: Operations, phase: Ints) -> tuple[RankSums, Ints]:
    """Add up the requests of each rank in each phase, and find where each phase begins."""
    order = np.lexsort((operations.rank, phase))
    rank = operations.rank[order]
    first = np.flatnonzero(changes(phase, rank))
    busy = operations.end_seconds - operations.start_seconds
    ranks = RankSums(
        rank=rank[first],
        requests=np.diff(np.append(first, len(order))),
        bytes=np.add.reduceat(operations.length[order], first),
        busy_seconds=np.add.reduceat(busy[order], first),
        end_seconds=np.maximum.reduceat(operations.end_seconds[order], first),
    )
    phases = int(phase[-1]) + 1 if len(phase) else 0
    return ranks, np.searchsorted(phase[first], np.arange(phases + 1))


def _stragglers(
    ranks: RankSums, first_row: Ints, least_seconds: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Find each phase's median end, and the ranks much later, by at least `least_seconds`."""
    count = np.diff(first_row)
    middle = _medians(ranks.end_seconds, first_row)
    late = ranks.end_seconds - np.repeat(middle, count)
    deviation = _medians(np.abs(late), first_row)
    least = np.maximum(np.maximum(least_seconds, _DEVIATIONS * deviation), _CLOCK_SKEW_SECONDS)
    is_straggler = (late > np.repeat(least, count)) & np.repeat(count >= _FEWEST_RANKS, count)
    return middle, is_straggler


def _medians(values: Floats, first_row: Ints) -> Floats:
    """Find the median of the rows of each phase."""
    first, count = first_row[:-1], np.diff(first_row)
    ordered = values[np.lexsort((values, np.repeat(np.arange(len(count)), count)))]
    medians: Floats = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return medians


def _rows_of(values: Floats, extreme: np.ufunc, first_row: Ints) -> Ints:
    """Find the first row of each phase that has the largest (or smallest) of its values."""
    count = np.diff(first_row)
    of_rows = np.repeat(extreme.reduceat(values, first_row[:-1]), count)
    rows = np.flatnonzero(values == of_rows)
    found: Ints = rows[np.searchsorted(rows, first_row[:-1])]
    return found
