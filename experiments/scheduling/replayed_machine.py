"""The machine that a queue is replayed on, and what a curve lets a job ask it for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.scheduling.curves import IoCurve
from ioncast_base.errors import InputError
from predictor.composition.decision import fewest_near_best


@dataclass(frozen=True)
class Machine:
    """A machine with a pool of I/O nodes.

    Attributes
    ----------
    nodes : int
        Compute nodes.
    pool : int
        I/O nodes.
    direct : bool
        Whether jobs may do without I/O nodes, where that was measured.
    """

    nodes: int
    pool: int
    direct: bool = False


def choices(curve: IoCurve, machine: Machine) -> list[int]:
    """The numbers of I/O nodes that a job can have, the fewest first."""
    return [n for n in curve.mib_s if (n or machine.direct) and n <= machine.pool]


def best(curve: IoCurve, machine: Machine) -> int:
    """The number of I/O nodes with the highest bandwidth; of equals the fewest."""
    return fewest_near_best({n: curve.mib_s[n] for n in choices(curve, machine)}, 0)


def at_most(most: int, curve: IoCurve, machine: Machine) -> int:
    """Round down to what was measured, but give at least one I/O node or what comes next."""
    some = [n for n in choices(curve, machine) if n]
    return max((n for n in some if n <= most), default=some[0])


def static(curve: IoCurve, nodes: int, machine: Machine) -> int:
    """I/O nodes in proportion to compute nodes, as machines have them that fix a ratio."""
    return at_most(nodes * machine.pool // machine.nodes, curve, machine)


def check_pool(curves: Iterable[IoCurve], machine: Machine) -> None:
    """Refuse a pool that is too small for what was measured.

    Raises
    ------
    InputError
        When a curve has no number of I/O nodes that the pool can serve.
    """
    needed = max(min(curve.forwarded) for curve in curves)
    if machine.pool < needed:
        raise InputError(
            f"a pool of {machine.pool} is less than the fewest I/O nodes of a measured curve",
            where="--pool",
            remedy=f"give at least {needed}",
        )
