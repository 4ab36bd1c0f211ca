"""Asynchronous I/O: no other bandwidth, but the program computes while its I/O goes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import Operation
from summario.phases.values import Phase

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hiding:
    """The phases that could be asynchronous, and the pauses after them.

    Attributes
    ----------
    group : ndarray of int, shape (phases,)
        The group of each phase. The phases of a group have no pause between them.
    is_hidden : ndarray of bool, shape (phases,)
        Whether the phase could be asynchronous.
    pauses_seconds : ndarray of shape (groups,)
        The time without I/O after each group; 0 after the last one.
    """

    group: NDArray[np.intp]
    is_hidden: NDArray[np.bool_]
    pauses_seconds: Array

    def saved(self, seconds: Array) -> Array:
        """Compute the time of I/O that fits into the pauses."""
        of_groups = np.zeros((len(self.pauses_seconds), *seconds.shape[1:]))
        np.add.at(of_groups, self.group[self.is_hidden], seconds[self.is_hidden])
        pauses = self.pauses_seconds.reshape(-1, *[1] * (seconds.ndim - 1))
        total: Array = np.minimum(of_groups, pauses).sum(axis=0)
        return total


def hiding_of(phases: Sequence[Phase], operations: Collection[Operation]) -> Hiding:
    """Find the pauses into which the MPI-IO of some operations can be hidden."""
    starts = np.array([phase.start_seconds for phase in phases], float)
    ends = np.array([phase.end_seconds for phase in phases], float)
    order = np.argsort(starts, kind="stable")
    # A group begins with the first phase that starts after all phases before it have ended.
    last_end = np.maximum.accumulate(ends[order])
    gaps = starts[order][1:] - last_end[:-1]
    group = np.zeros(len(phases), np.intp)
    group[order[1:]] = np.cumsum(gaps > 0)
    return Hiding(
        group=group,
        is_hidden=np.array(
            [phase.api == "MPIIO" and phase.operation in operations for phase in phases], bool
        ),
        pauses_seconds=np.append(gaps[gaps > 0], 0.0),
    )
