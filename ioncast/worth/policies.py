"""The policies that are compared: the number of I/O nodes that a job needs to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.policy import Policy
from ioncast.worth.replayed_machine import Machine, at_most, best, choices, static
from ioncast.worth.workload import Ints, Workload
from ioncast_base.errors import InputError


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
    asked = cache(lambda curve, nodes: ask(work.believed[curve], nodes))
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
