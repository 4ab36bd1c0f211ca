"""The time from a phase's first open to its last close, without pauses over the time distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from summario.phases.merge import FilePhases
from summario.phases.streams import Floats, Ints, changes

# If hidden pauses can be no longer than this share of the time, both are close enough.
_CLOSE_ENOUGH = 0.05


def elapsed_times(
    file_phases: FilePhases, group: Ints, slowest: Floats, time_distance: float
) -> Floats:
    """Compute the time that each group of rows took, in seconds; NaN if it is not known.

    A group takes from the first open or access to the last access or close. A time of more than
    `time_distance` between an open and the first access, or the last access and a close, only
    counts as far as the calls of a file take longer than the rest: fsync, and slow opens.

    The time is not known if the log does not show pauses, and more than `time_distance` and 5 % of
    the group's time are neither reads, writes nor metadata calls of the slowest process, which
    spent `slowest` seconds in calls.
    """
    order = np.argsort(group, kind="stable")
    [first] = changes(group[order]).nonzero()

    def over(extreme: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = extreme.reduceat(values[order], first)
        return found

    begin, end = without_pauses(file_phases, time_distance)
    whole = over(np.maximum, file_phases.last) - over(np.minimum, file_phases.first)
    elapsed = over(np.maximum, end + _outside(file_phases, begin, end)) - over(np.minimum, begin)
    elapsed = np.where(whole - elapsed <= time_distance, np.maximum(whole, elapsed), elapsed)
    longest_hidden = np.maximum(time_distance, _CLOSE_ENOUGH * elapsed)
    are_shown = over(np.logical_and, file_phases.shown) | (elapsed - slowest <= longest_hidden)
    return np.where(are_shown & (whole >= 0) & (elapsed > 0), elapsed, np.nan)


def _outside(file_phases: FilePhases, begin: Floats, end: Floats) -> Floats:
    """How much longer than from `begin` to `end` the calls of each row take, in seconds.

    The rest is in the times that were left out as pauses. Without a close in the log it may be
    longer than these: fsync comes after the last write.
    """
    more = np.maximum(file_phases.calls - (end - begin), 0)
    left_out = (begin - file_phases.first) + (file_phases.last - end)
    return np.where(file_phases.last > file_phases.moved_until, np.minimum(more, left_out), more)


def without_pauses(file_phases: FilePhases, time_distance: float) -> tuple[Floats, Floats]:
    """First open and last close of each row; first and last access if a pause is between."""
    first, begin = file_phases.first, file_phases.moved_from
    end, last = file_phases.moved_until, file_phases.last
    return (
        np.where(begin - first <= time_distance, first, begin),
        np.where(last - end <= time_distance, last, end),
    )
