"""How many I/O nodes a job asks for: the policies that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.scheduling.curves import IoCurve
from experiments.scheduling.replayed_machine import Machine, at_most, best, choices, static
from experiments.scheduling.workload import Ints, Workload
from ioncast_base.allocation.dividing import JobCurve, allocate
from ioncast_base.errors import InputError


@dataclass(frozen=True)
class Policy:
    """A way to give jobs I/O nodes.

    Attributes
    ----------
    name : str
        What it is called.
    meaning : str
        What a job gets.
    asks : callable
        A workload and a machine to how many I/O nodes each job must get to start.
    arbitrates : bool
        Whether jobs that start get more where that pays, as far as the pool has it.
    is_direct : bool
        Whether jobs get no I/O nodes at all, which all curves must have been measured with.
    """

    name: str
    meaning: str
    asks: Callable[[Workload, Machine], Ints]
    arbitrates: bool = False
    is_direct: bool = False


class Arbiter:
    """Divides what is free among jobs that start at the same time.

    It is the arbitration of `ioncast_base.allocation.dividing` with every job that runs fixed, and
    at least the fewest I/O nodes that its curve allows for every job that starts.

    Parameters
    ----------
    curves : sequence of IoCurve
        Of all jobs.
    machine : Machine
        Where they run.
    """

    def __init__(self, curves: Sequence[IoCurve], machine: Machine) -> None:
        self._options = [choices(curve, machine) for curve in curves]
        self._above = [
            {n - options[0]: curve.mib_s[n] for n in options}
            for curve, options in zip(curves, self._options, strict=True)
        ]
        self._divided = cache(self._divide)

    def divide(self, curves: Sequence[int], free: int) -> list[int]:
        """Divide what is free.

        Parameters
        ----------
        curves : sequence of int
            For each job that starts, the place of its curve.
        free : int
            I/O nodes beside the fewest that each of them has.

        Returns
        -------
        list of int
            I/O nodes of each job.
        """
        # The same jobs in another order are the same question.
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


def jobs_at_once(work: Workload, machine: Machine) -> float:
    """How many jobs run at once on a machine that is full."""
    node_seconds = float(work.nodes @ work.recorded_s)
    return machine.nodes * float(work.recorded_s.sum()) / node_seconds


def _static(work: Workload, machine: Machine) -> Ints:
    return _of_each(work, lambda curve, nodes: static(curve, nodes, machine))


def _equal(work: Workload, machine: Machine) -> Ints:
    share = int(machine.pool / jobs_at_once(work, machine))
    return _of_each(work, lambda curve, _: at_most(share, curve, machine))


def _one(work: Workload, machine: Machine) -> Ints:
    return _of_each(work, lambda curve, _: at_most(1, curve, machine))


def _best(work: Workload, machine: Machine) -> Ints:
    return _of_each(work, lambda curve, _: best(curve, machine))


def _fewest(work: Workload, machine: Machine) -> Ints:
    return _of_each(work, lambda curve, _: choices(curve, machine)[0])


def _direct(work: Workload, machine: Machine) -> Ints:
    return np.zeros(len(work), dtype=np.int64)


def _of_each(work: Workload, ask: Callable[[IoCurve, int], int]) -> Ints:
    """Ask for each job by its curve and its compute nodes."""
    asked = cache(lambda curve, nodes: ask(work.curves[curve], nodes))
    pairs = zip(work.curve.tolist(), work.nodes.tolist(), strict=True)
    return np.array([asked(*pair) for pair in pairs], dtype=np.int64)


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("static", "in proportion to its compute nodes", _static),
        Policy("equal", "the pool over the jobs that run at once on a full machine", _equal),
        Policy("one", "one I/O node", _one),
        Policy("best", "its own best", _best),
        Policy("mckp", "what arbitration gives it of what is free", _fewest, arbitrates=True),
        Policy("direct", "none, where all curves were measured so", _direct, is_direct=True),
    )
}


def chosen_policies(names: Sequence[str], curves: Sequence[IoCurve]) -> list[Policy]:
    """The policies of these names, or all that the curves allow.

    Raises
    ------
    InputError
        When direct access is asked for and not all curves have it.
    """
    asked = [POLICIES[name] for name in dict.fromkeys(names)]
    without = sum(0 not in curve.mib_s for curve in curves)
    possible = [policy for policy in POLICIES.values() if not (policy.is_direct and without)]
    for policy in asked:
        if policy not in possible:
            raise InputError(
                f"{without} of {len(curves)} curves were not measured without I/O nodes",
                where=f"--policy {policy.name}",
                remedy="leave it out",
            )
    return asked or possible
