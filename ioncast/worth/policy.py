"""A rule for the number of I/O nodes of each job, and arbitration among jobs that start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.replayed_machine import Machine, choices
from ioncast.worth.workload import Ints, Workload
from ioncast_base.knapsack import JobCurve, allocate


@dataclass(frozen=True)
class Policy:
    """A rule for the number of I/O nodes of each job, with its meaning in words.

    `asks` takes a workload and a machine, and returns the number of I/O nodes that each job needs
    to start. With `arbitrates` free I/O nodes are divided among the jobs that start. With
    `is_direct` all jobs use direct access; every curve must have been measured with it.
    """

    name: str
    meaning: str
    asks: Callable[[Workload, Machine], Ints]
    arbitrates: bool = False
    is_direct: bool = False


class SimulatedArbiter:
    """Divides free I/O nodes among jobs that start at the same time, as the arbiter does.

    Running jobs keep their I/O nodes, and every starting job gets at least the fewest that its
    curve allows.
    """

    def __init__(self, curves: Sequence[IoCurve], machine: Machine) -> None:
        self._options = [choices(curve, machine) for curve in curves]
        self._above = [
            {n - options[0]: curve.mib_s[n] for n in options}
            for curve, options in zip(curves, self._options, strict=True)
        ]
        self._divided = cache(self._divide)

    def divide(self, curves: Sequence[int], free: int) -> list[int]:
        """Divide free I/O nodes, beyond the fewest that each job has already, by curves."""
        # Sorted jobs, so that the cache knows the same jobs in another order.
        order = sorted(range(len(curves)), key=lambda place: curves[place])
        wanted = sum(max(self._above[curve]) for curve in curves)
        shares = self._divided(tuple(curves[place] for place in order), min(free, wanted))
        given = dict(zip(order, shares, strict=True))
        return [given[place] for place in range(len(curves))]

    def _divide(self, curves: tuple[int, ...], free: int) -> list[int]:
        jobs = [JobCurve(str(place), 1, self._above[curve]) for place, curve in enumerate(curves)]
        shares = allocate(jobs, free).shares
        return [
            self._options[curve][0] + (share.io_nodes or 0)
            for curve, share in zip(curves, shares, strict=True)
        ]
