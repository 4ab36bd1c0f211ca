"""The time of phases together, if some of them run at the same time.

A process waits for one I/O call before it makes the next. So phases of the same processes add up
even if they interleave, but phases of different processes do not. The log does not say which
processes two phases share. So for each moment, a lower bound of the busiest process's waiting
time is taken: the time of each phase is spread evenly over its interval in the log, and where
phases i with times x_i are active, their time together is

    max( max x_i, Σ x_i · processes_i / nprocs )

that is the longest of them, or the total of the average process, whichever is longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from summario.phases.values import Phase

# Shorter than the resolution of Darshan's clock.
_INSTANT_SECONDS = 1e-9

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Timeline:
    """The intervals of phases in the log, cut into slots in which the same phases are active.

    Attributes
    ----------
    first, after : ndarray of shape (phases,)
        The first slot of each phase, and the slot after its last.
    weights : ndarray of shape (phases,)
        The share of the job's processes that took part.
    added, shared : ndarray of int
        Indices of phases whose times simply add up, and of those that share time with others.
    """

    slots_seconds: Array
    first: Indices
    after: Indices
    lengths_seconds: Array
    weights: Array
    added: Indices
    shared: Indices

    def elapsed(self, times: Array) -> Array:
        """Compute the time of all phases together."""
        total: Array = times[self.added].sum(axis=0)
        if self.shared.size:
            nothing = np.zeros_like(total)
            total += self._between(0, len(self.slots_seconds), times, self.shared, nothing, nothing)
        return total

    def _between(
        self, low: int, high: int, times: Array, active: Indices, longest: Array, load: Array
    ) -> Array:
        """Compute the time of the slots from `low` to before `high`.

        `longest` and `load` are the two terms of the maximum for phases that are active in all
        of these slots, per second of the log. `active` are the other phases. The range is
        halved again and again, so each phase is met a logarithmic number of times.
        """
        throughout = (self.first[active] <= low) & (self.after[active] >= high)
        for i in active[throughout]:
            pace = times[i] / self.lengths_seconds[i]
            longest = np.maximum(longest, pace)
            load = load + self.weights[i] * pace
        rest = active[~throughout]
        if not rest.size:
            taken: Array = np.maximum(longest, load) * self.slots_seconds[low:high].sum()
            return taken
        middle = (low + high) // 2
        early, late = rest[self.first[rest] < middle], rest[self.after[rest] > middle]
        return self._between(low, middle, times, early, longest, load) + self._between(
            middle, high, times, late, longest, load
        )


def timeline_of(phases: Sequence[Phase]) -> Timeline:
    """Cut the intervals of one job's phases into slots.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from summario.phases.values import Phase
    >>> one = Phase(1, 0, 2, "write", 0, 1, 8, 9, 2, "POSIX", 1, "contiguous", "unique", 1, 1, ())
    >>> float(timeline_of([one, replace(one, rank=5)]).elapsed(np.array([2.0, 3.0])))
    3.0
    >>> later = replace(one, start_seconds=2, end_seconds=4)
    >>> float(timeline_of([one, later]).elapsed(np.array([2.0, 3.0])))
    5.0
    """
    starts = np.array([phase.start_seconds for phase in phases], float)
    ends = np.array([phase.end_seconds for phase in phases], float)
    return _cut(starts, ends, np.array([_weight(phase) for phase in phases], float))


def seconds_together(phases: Sequence[Phase]) -> float:
    """Compute the time that the phases of a run took together, with opens and closes.

    Times in which several phases run count once. Longer pauses do not count. A phase whose elapsed
    time is not known takes its I/O time, spread over its interval as in a prediction.
    """
    times = np.array([own_seconds(phase) for phase in phases], float)
    if _are_apart(phases):
        # Only phases that overlap need a timeline, which takes longer than all else.
        return float(times.sum())
    known = np.array([phase.elapsed_seconds is not None for phase in phases], bool)
    starts = np.array([phase.start_seconds for phase in phases], float)
    ends = np.array([phase.end_seconds for phase in phases], float)
    # Elapsed times do not add up, even if all processes took part.
    weights = np.where(known, 0.0, [_weight(phase) for phase in phases])
    return float(_cut(starts, np.where(known, starts + times, ends), weights).elapsed(times))


def _are_apart(phases: Sequence[Phase]) -> bool:
    """Whether each phase surely ends before the next one starts."""
    spans = sorted(
        (phase.start_seconds, max(phase.end_seconds, phase.start_seconds + own_seconds(phase)))
        for phase in phases
    )
    return all(one[1] < other[0] for one, other in pairwise(spans))


def own_seconds(phase: Phase) -> float:
    """The seconds that a phase took by itself: its elapsed time, or its I/O time."""
    elapsed = phase.elapsed_seconds
    return phase.io_time_seconds if elapsed is None else elapsed


def _cut(starts: Array, ends: Array, weights: Array) -> Timeline:
    """Cut intervals into slots; `weights` are the shares of the job's processes."""
    # A phase without duration overlaps only phases at the same instant, so it gets a slot of 1 s.
    instant = ends - starts < _INSTANT_SECONDS
    cuts = np.unique(np.concatenate([starts[~instant], ends[~instant]]))
    moments = np.unique(starts[instant])
    at_moment = len(cuts) + np.searchsorted(moments, starts)
    first = np.where(instant, at_moment, np.searchsorted(cuts, starts))
    after = np.where(instant, at_moment + 1, np.searchsorted(cuts, ends))
    shared = _shares_time(first, after, weights)
    return Timeline(
        # The slot after the last cut has length 0.
        slots_seconds=np.concatenate([np.diff(cuts, append=cuts[-1:]), np.ones(len(moments))]),
        first=first,
        after=after,
        lengths_seconds=np.where(instant, 1.0, ends - starts),
        weights=weights,
        added=np.flatnonzero(~shared),
        shared=np.flatnonzero(shared),
    )


def _weight(phase: Phase) -> float:
    return min(1.0, phase.processes / phase.nprocs) if phase.nprocs else 1.0


def _shares_time(first: Indices, after: Indices, weights: Array) -> NDArray[np.bool_]:
    """Find phases that overlap another one, unless all processes took part in both."""
    partial = weights < 1
    by_partial = _overlaps(first, after, partial)
    by_any = _overlaps(first, after, np.full(len(first), True))
    # A partial phase overlaps itself.
    return np.where(partial, by_any > 1, by_partial > 0)


def _overlaps(first: Indices, after: Indices, others: NDArray[np.bool_]) -> Indices:
    begun = np.searchsorted(np.sort(first[others]), after, side="left")
    over = np.searchsorted(np.sort(after[others]), first, side="right")
    return begun - over
