"""What the scheduler is told: how many I/O nodes a job gets, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.wording import in_digits, in_words
from predictor.composition.composing import Point

# The share of the best bandwidth that may be given up for fewer I/O nodes, where a site sets none.
TOLERANCE = 0.05
# Bandwidths that differ by rounding are equal.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Decision:
    """The number of I/O nodes for a job.

    Attributes
    ----------
    io_nodes : int or None
        How many; 0 is direct access, None is no answer.
    source : str
        "model"; "default" is the site's, where nothing is known; "none" where it has none.
    bandwidth_mib_s : float or None
        What is expected with them, in MiB/s.
    tolerance : float
        The share of the best bandwidth that may be given up for fewer I/O nodes.
    within_10_percent : float or None
        The probability that they reach at least 0.9 of what the best ones do.
    why : str
        One clause in plain English.
    """

    io_nodes: int | None
    source: Literal["model", "default", "none"]
    bandwidth_mib_s: float | None
    tolerance: float
    within_10_percent: float | None
    why: str


def decide(
    curve: Sequence[Point],
    expected: NDArray[np.float64],
    *,
    tolerance: float = TOLERANCE,
    available: int | None = None,
    default: int | None = None,
    unknown: str | None = None,
) -> Decision:
    """Take the fewest I/O nodes whose expected bandwidth is within a tolerance of the best.

    Parameters
    ----------
    curve : sequence of Point
        The prediction, in any order; empty where nothing is known.
    expected : ndarray of shape (draws, points)
        Draws of the expected bandwidths in MiB/s, jointly over the points of `curve`.
    tolerance : float
        The share of the best bandwidth that may be given up, at least 0 and below 1.
    available : int, optional
        At most so many I/O nodes are given, and only these are compared.
    default : int, optional
        The site's number of I/O nodes for jobs of which nothing is known.
    unknown : str, optional
        Why the curve is not to be relied on, as a clause.

    Raises
    ------
    InputError
        When the tolerance or a number of I/O nodes is out of range.

    Examples
    --------
    >>> from predictor.composition.composing import Bandwidth
    >>> curve = [Point(n, Bandwidth(b, b, b, b), 1.0) for n, b in ((0, 50), (4, 97), (8, 100))]
    >>> decision = decide(curve, np.array([[50, 97, 100], [50, 88, 100]]))
    >>> decision.io_nodes, decision.within_10_percent
    (4, 0.5)
    >>> decision.why
    '4 I/O nodes give 97% of the best (8: 100 MiB/s)'
    """
    _check(tolerance, available=available, default=default)
    columns = [i for i, p in enumerate(curve) if available is None or p.io_nodes <= available]
    reason = unknown or (None if columns else nothing_known(available if curve else None))
    if reason:
        return abstain(reason, tolerance, available, default)
    chosen = _column(curve, columns, tolerance)
    enough = expected[:, chosen] >= 0.9 * expected[:, columns].max(axis=1)
    cut_off = _cut_off(curve, columns, chosen, available)
    why = _gain(curve, columns, chosen, is_all=not cut_off) + cut_off
    point = curve[chosen]
    return Decision(
        point.io_nodes, "model", point.bandwidth_mib_s.mean, tolerance, float(enough.mean()), why
    )


def _check(tolerance: float, **numbers: int | None) -> None:
    if not 0 <= tolerance < 1:
        raise InputError(
            f"{tolerance:g} is no tolerance",
            where="tolerance",
            remedy="give a share of at least 0 and below 1, such as 0.05",
        )
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise InputError(
                f"{number} is no number of I/O nodes", where=name, remedy="give 0 or more"
            )


def fewest_near_best(bandwidths_mib_s: Mapping[int, float], tolerance: float = TOLERANCE) -> int:
    """Take the fewest I/O nodes whose bandwidth is within a tolerance of the highest.

    Parameters
    ----------
    bandwidths_mib_s : mapping of int to float
        Bandwidth in MiB/s by number of I/O nodes; at least one.
    tolerance : float
        The share of the highest that may be given up, at least 0 and below 1.

    Examples
    --------
    >>> curve = {0: 96.0, 4: 100.0, 8: 100.0}
    >>> fewest_near_best(curve, 0), fewest_near_best(curve, 0.05)
    (4, 0)
    """
    least = (1 - tolerance) * (1 - _ROUNDING) * max(bandwidths_mib_s.values())
    return min(n for n, bandwidth in bandwidths_mib_s.items() if bandwidth >= least)


def _column(curve: Sequence[Point], columns: Iterable[int], tolerance: float) -> int:
    """Find the point of the fewest I/O nodes within a tolerance of the best of some columns."""
    places = {curve[i].io_nodes: i for i in columns}
    return places[
        fewest_near_best({n: curve[i].bandwidth_mib_s.mean for n, i in places.items()}, tolerance)
    ]


def nothing_known(available: int | None) -> str:
    """Why nothing is decided; of what is `available`, where that is the reason."""
    if available is None:
        return "nothing is known of this job"
    return f"nothing is known of what is available ({in_words(available)} at most)"


def abstain(reason: str, tolerance: float, available: int | None, default: int | None) -> Decision:
    """Take the site's default, and say why."""
    if default is None:
        why = f"{reason}, and the site has no default"
        return Decision(None, "none", None, tolerance, None, why)
    why = f"{reason}: the site's default"
    if available is not None and available < default:
        why += f" is {default}, but {at_most(available)}"
        default = available
    return Decision(default, "default", None, tolerance, None, why)


def _gain(curve: Sequence[Point], columns: Sequence[int], chosen: int, *, is_all: bool) -> str:
    """How good the choice is among those compared; whether that is all there is to say."""
    nodes, bandwidth = curve[chosen].io_nodes, curve[chosen].bandwidth_mib_s.mean
    gives = f"{in_words(nodes)} {'give' if nodes > 1 else 'gives'}"
    limit = "" if len(columns) == len(curve) else " available"
    best = _column(curve, columns, 0)
    if len(columns) == 1:
        alone = f"; nothing else{limit} is known" if is_all else ""
        return f"{gives} {in_digits(bandwidth)} MiB/s{alone}"
    if best == chosen:
        return f"{gives} the highest expected bandwidth{limit}, {in_digits(bandwidth)} MiB/s"
    highest = curve[best].bandwidth_mib_s.mean
    share = f"{bandwidth / highest:.0%} of the best{limit}"
    return f"{gives} {share} ({curve[best].io_nodes}: {in_digits(highest)} MiB/s)"


def _cut_off(
    curve: Sequence[Point], columns: Sequence[int], chosen: int, available: int | None
) -> str:
    """What a better number of I/O nodes would give that is not available."""
    best = _column(curve, range(len(curve)), 0)
    if best in columns or available is None:
        return ""
    more = curve[best].bandwidth_mib_s.mean / curve[chosen].bandwidth_mib_s.mean - 1
    much = f"{more:.0%}" if more >= 0.01 else "less than 1%"
    return f"; {curve[best].io_nodes} would give {much} more, but {at_most(available)}"


def at_most(available: int) -> str:
    """What keeps a job from getting more."""
    if available == 0:
        return "none is available"
    return f"at most {available} {'is' if available == 1 else 'are'} available"
