"""The policies: the number of I/O nodes that a job needs to start, and arbitration."""

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
    """A rule for the number of I/O nodes of each job.

    Attributes
    ----------
    name : str
        The policy's name.
    meaning : str
        The I/O nodes that a job gets, in words.
    asks : callable
        Takes a workload and a machine, and returns the number of I/O nodes that each job needs
        to start.
    arbitrates : bool
        Whether free I/O nodes are divided among the jobs that start.
    is_direct : bool
        Whether all jobs use direct access; every curve must have been measured with it.
    """

    name: str
    meaning: str
    asks: Callable[[Workload, Machine], Ints]
    arbitrates: bool = False
    is_direct: bool = False


class Arbiter:
    """Divides free I/O nodes among jobs that start at the same time.

    This is the arbitration of `ioncast_base.allocation.dividing`: running jobs keep their I/O
    nodes, and every starting job gets at least the fewest that its curve allows.

    Parameters
    ----------
    curves : sequence of IoCurve
        The curves that jobs follow.
    machine : Machine
        The machine that the jobs run on.
    """

    def __init__(self, curves: Sequence[IoCurve], machine: Machine) -> None:
        self._options = [choices(curve, machine) for curve in curves]
        self._above = [
            {n - options[0]: curve.mib_s[n] for n in options}
            for curve, options in zip(curves, self._options, strict=True)
        ]
        self._divided = cache(self._divide)

    def divide(self, curves: Sequence[int], free: int) -> list[int]:
        """Divide free I/O nodes.

        Parameters
        ----------
        curves : sequence of int
            Index of the curve of each job that starts.
        free : int
            Number of I/O nodes to divide, beyond the fewest that each job has already.

        Returns
        -------
        list of int
            I/O nodes of each job, in the same order.
        """
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


def jobs_at_once(work: Workload, machine: Machine) -> float:
    """Average number of jobs that run at the same time on a full machine."""
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
    """Compute the I/O nodes of each job from its curve and its compute nodes."""
    asked = cache(lambda curve, nodes: ask(work.curves[curve], nodes))
    pairs = zip(work.curve.tolist(), work.nodes.tolist(), strict=True)
    return np.array([asked(*pair) for pair in pairs], dtype=np.int64)


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("static", "in proportion to its compute nodes", _static),
        Policy(
            "equal",
            "the pool divided by the number of jobs that run at once on a full machine",
            _equal,
        ),
        Policy("one", "one I/O node", _one),
        Policy("best", "the number with its highest bandwidth", _best),
        Policy(
            "mckp",
            "its smallest number, and more of the free I/O nodes by arbitration",
            _fewest,
            arbitrates=True,
        ),
        Policy(
            "direct",
            "no I/O nodes; only if all curves were measured with direct access",
            _direct,
            is_direct=True,
        ),
    )
}


def chosen_policies(names: Sequence[str], curves: Sequence[IoCurve]) -> list[Policy]:
    """Take the policies of these names, or without names all that the curves allow.

    Raises
    ------
    InputError
        If a policy of direct access is named, and not all curves were measured with it.
    """
    asked = [POLICIES[name] for name in dict.fromkeys(names)]
    without = sum(0 not in curve.mib_s for curve in curves)
    possible = [policy for policy in POLICIES.values() if not (policy.is_direct and without)]
    for policy in asked:
        if policy not in possible:
            raise InputError(
                f"{without} of {len(curves)} curves were not measured with direct access",
                where=f"--policy {policy.name}",
                remedy="leave it out",
            )
    return asked or possible
