"""The machine that a queue is replayed on, and the numbers of I/O nodes that jobs can get."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ioncast.worth.io_curves import IoCurve
from ioncast_base.errors import InputError
from predictor.curve.decision import fewest_near_best


@dataclass(frozen=True)
class Machine:
    """A machine with a pool of I/O nodes.

    Attributes
    ----------
    direct : bool
        Whether jobs may use direct access, if their curve was measured with it.
    """

    nodes: int
    pool: int
    direct: bool = False


def pool_sizes(text: str) -> tuple[int, ...]:
    """Read numbers of I/O nodes such as 4,8,16, sorted and each once; InputError for other texts.

    Examples
    --------
    >>> pool_sizes("8, 4,8")
    (4, 8)
    """
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isascii() and number.isdecimal() and len(number) < 6 for number in numbers):
        raise InputError(f"{text!r} is not a list of numbers such as 4,8,16")
    sizes = tuple(sorted(set(map(int, numbers))))
    if 0 in sizes:
        raise InputError("a pool of 0 is direct access, which is always compared")
    return sizes


def choices(curve: IoCurve, machine: Machine) -> list[int]:
    """Numbers of I/O nodes that a job can get, in ascending order."""
    return [n for n in curve.mib_s if (n or machine.direct) and n <= machine.pool]


def best(curve: IoCurve, machine: Machine) -> int:
    """Number of I/O nodes with the highest bandwidth; the fewest of equals."""
    return fewest_near_best({n: curve.mib_s[n] for n in choices(curve, machine)}, 0)


def at_most(most: int, curve: IoCurve, machine: Machine) -> int:
    """Round down to a measured number of I/O nodes, but not below the smallest above 0."""
    some = [n for n in choices(curve, machine) if n]
    return max((n for n in some if n <= most), default=some[0])


def static(curve: IoCurve, nodes: int, machine: Machine) -> int:
    """I/O nodes in proportion to compute nodes, as on machines with a fixed ratio."""
    return at_most(nodes * machine.pool // machine.nodes, curve, machine)


def check_pool(curves: Iterable[IoCurve], machine: Machine) -> None:
    """Check that the pool has at least the smallest measured number of I/O nodes of every curve."""
    needed = max(min(curve.forwarded) for curve in curves)
    if machine.pool < needed:
        raise InputError(
            f"a pool of {machine.pool} is too small for the measured curves",
            where="--pool",
            remedy=f"give at least {needed}",
        )
