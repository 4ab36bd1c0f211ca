"""The decision: how many I/O nodes a job gets, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ioncast_base.errors import InputError
from predictor.curve.reasons import (
    Chosen,
    Defaulted,
    Unavailable,
    Unsure,
    clause,
    nothing_known,
)

if TYPE_CHECKING:
    # The process that answers schedulers uses `abstain`. Models, the database and NumPy would
    # double the time of its start.
    import numpy as np
    from numpy.typing import NDArray

    from predictor.curve.composing import Point

# The share of the best bandwidth that may be given up for fewer I/O nodes; a site may set another.
TOLERANCE = 0.05
# A number of I/O nodes is chosen if it is near the best, or better than the default, with at least
# this probability; a site may set another.
MIN_CONFIDENCE = 0.5
# A decision needs benchmarks of at least this share of the bytes, ...
LEAST_KNOWN = 0.5
# ... or so many runs of the application, with so many different numbers of I/O nodes.
_RUNS, _NUMBERS = 3, 2
# The draws are split into so many slices with runs of about the same bandwidth.
_SLICES = 10
# A number with this share of the best bandwidth is near the best.
_NEAR = 0.9
# Bandwidths that differ by rounding are equal.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Decision:
    """The number of I/O nodes for a job; 0 is direct access, None is no answer.

    `source` is "model" when it was chosen from a curve, "default" for the site's number, and "none"
    without one. `bandwidth_mib_s` is expected with this number. `tolerance` is the share of the
    best bandwidth that may be given up for fewer I/O nodes. `within_10_percent` is the probability
    that the job reaches 0.9 of the best bandwidth.
    """

    io_nodes: int | None
    source: Literal["model", "default", "none"]
    bandwidth_mib_s: float | None
    tolerance: float
    within_10_percent: float | None
    reason: Chosen | Defaulted

    @property
    def why(self) -> str:
        """The reason as one clause in plain English."""
        return clause(self.reason)


def decide(
    curve: Sequence[Point],
    expected: NDArray[np.float64],
    runs: NDArray[np.float64] | None = None,
    *,
    tolerance: float = TOLERANCE,
    available: int | None = None,
    default: int | None = None,
    min_confidence: float = MIN_CONFIDENCE,
    share: float = 1.0,
    unknown: str | None = None,
) -> Decision:
    """Take the fewest I/O nodes whose expected bandwidth is within a tolerance of the best.

    If it is not likely enough that they are near the best, or better than the default, the site's
    default holds.

    Parameters
    ----------
    expected : ndarray of shape (draws, points)
        Draws of the expected bandwidths in MiB/s, jointly over the points of `curve`.
    runs : ndarray of shape (draws, points), optional
        The bandwidth of a run of each draw; by default runs do not scatter.
    min_confidence : float
        The least probability that the number reaches 0.9 of the best bandwidth, or is better than
        the default; at least 0 and below 1. With a tolerance above 0.05, 0.95 minus the tolerance
        takes the place of 0.9.
    share : float
        The probability that the job does the I/O of the curve, or other I/O for which the number is
        the same. All probabilities are multiplied by it.

    Examples
    --------
    >>> import numpy as np
    >>> from predictor.curve.composing import Bandwidth, Point
    >>> curve = [Point(n, Bandwidth(b, b, b, b), 1.0) for n, b in ((0, 50), (4, 97), (8, 100))]
    >>> decision = decide(curve, np.array([[50, 97, 100], [50, 88, 100]]))
    >>> decision.io_nodes, decision.within_10_percent
    (4, 0.5)
    >>> decision.why
    '4 I/O nodes give 97 MiB/s, 97% of the best (100 MiB/s with 8 I/O nodes)'
    """
    _check(tolerance, min_confidence, available=available, default=default)
    columns = [i for i, p in enumerate(curve) if available is None or p.io_nodes <= available]
    cause = unknown or (None if columns else nothing_known(available if curve else None))
    if cause:
        return abstain(cause, available=available, default=default, tolerance=tolerance)
    chosen = _column(curve, columns, tolerance)
    of_best = expected[:, chosen] / expected[:, columns].max(axis=1)
    # A site that tolerates more takes numbers on purpose that are not near the best.
    enough = min(_NEAR, _NEAR + TOLERANCE - tolerance)
    near = share * float((of_best >= enough).mean())
    if near < min_confidence:
        beside = _default_column(curve, columns, default)
        if beside is None or share * _better(expected, chosen, beside) < min_confidence:
            outcomes = expected if runs is None else runs
            column, expected_near = _most_telling(
                curve, expected, outcomes, columns, tolerance, enough
            )
            unsure = Unsure(
                io_nodes=curve[chosen].io_nodes,
                share_of_best=enough,
                probability=near,
                run_with=None if share < min_confidence else curve[column].io_nodes,
                is_enough=share * expected_near >= min_confidence,
            )
            return abstain(unsure, available=available, default=default, tolerance=tolerance)
    return Decision(
        io_nodes=curve[chosen].io_nodes,
        source="model",
        bandwidth_mib_s=curve[chosen].bandwidth_mib_s.mean,
        tolerance=tolerance,
        within_10_percent=share * float((of_best >= _NEAR).mean()),
        reason=_reason(curve, columns, chosen, available),
    )


def abstain(
    cause: str | Unsure, *, available: int | None, default: int | None, tolerance: float = TOLERANCE
) -> Decision:
    """Take the site's default, at most as many I/O nodes as are available.

    `cause` says why nothing can be chosen from a curve, as a clause or as values.
    """
    if default is None:
        return Decision(None, "none", None, tolerance, None, Defaulted(cause, None, None))
    limit = available if available is not None and available < default else None
    io_nodes = default if limit is None else limit
    return Decision(io_nodes, "default", None, tolerance, None, Defaulted(cause, default, limit))


def too_little_known(known: float, moved: float, ran_with: Sequence[int]) -> str | None:
    """Say that a curve is of too small a part of a run to decide on, and what would help.

    The application's own runs show what the unknown part does, once they had several numbers of I/O
    nodes. The result is a clause; None if a decision may rest on the curve.

    Examples
    --------
    >>> too_little_known(50, 100, []), too_little_known(2, 100, [0, 4, 4])
    (None, None)
    """
    if known >= LEAST_KNOWN * moved or (len(ran_with) >= _RUNS and len({*ran_with}) >= _NUMBERS):
        return None
    percent = math.floor(100 * known / moved)
    some = f"only {percent}%" if percent else "less than 1%"
    return (
        f"{some} of the bytes have a benchmark (measure the rest, which `ioncast match` lists; the"
        f" service also decides after {_RUNS} runs with {_NUMBERS} numbers of I/O nodes)"
    )


def decision_record(decision: Decision) -> dict[str, Any]:
    """The decision as plain values for JSON."""
    return {
        "io_nodes": decision.io_nodes,
        "source": decision.source,
        "bandwidth_mib_s": decision.bandwidth_mib_s,
        "tolerance": decision.tolerance,
        "within_10_percent": decision.within_10_percent,
        "why": decision.why,
    }


def _check(tolerance: float, min_confidence: float, **numbers: int | None) -> None:
    if not 0 <= tolerance < 1:
        raise InputError(
            f"{tolerance:g} is not a tolerance",
            where="tolerance",
            remedy="give a share of at least 0 and below 1, such as 0.05",
        )
    if not 0 <= min_confidence < 1:
        raise InputError(
            f"{min_confidence:g} is not a least confidence",
            where="min_confidence",
            remedy="give a probability of at least 0 and below 1, such as 0.5",
        )
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise InputError(
                f"{number} is not a number of I/O nodes", where=name, remedy="give 0 or more"
            )


def fewest_near_best(bandwidths_mib_s: Mapping[int, float], tolerance: float = TOLERANCE) -> int:
    """Take the fewest I/O nodes whose bandwidth is within a tolerance of the highest.

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


def _default_column(
    curve: Sequence[Point], columns: Iterable[int], default: int | None
) -> int | None:
    """Find the point of the default; for a number that was not predicted, that of the next lower.

    Direct access stands in for no number, and no number stands in for direct access.
    """
    if default is None:
        return None
    places = {curve[i].io_nodes: i for i in columns}
    below = [n for n in places if n <= default and (n > 0) == (default > 0)]
    return places[max(below)] if below else None


def _most_telling(
    curve: Sequence[Point],
    expected: NDArray[np.float64],
    runs: NDArray[np.float64],
    columns: Sequence[int],
    tolerance: float,
    enough: float,
) -> tuple[int, float]:
    """Find the point at which a run makes the next decision surest.

    For each point the draws are grouped by the bandwidth that a run gets there, and each group
    decides anew. The point is taken after which decisions are most often near the best.
    """
    import numpy as np  # noqa: PLC0415

    draws = expected[:, columns]
    numbers = [curve[i].io_nodes for i in columns]
    of_best = draws / draws.max(axis=1, keepdims=True)
    near = []
    for column in range(len(columns)):
        order = np.argsort(runs[:, columns[column]])
        alike = np.array_split(order, min(_SLICES, len(draws)))
        near.append(
            sum(
                (of_best[rows, _fewest(numbers, draws[rows], tolerance)] >= enough).sum()
                for rows in alike
            )
            / len(draws)
        )
    return columns[int(np.argmax(near))], float(max(near))


def _fewest(numbers: Sequence[int], draws: NDArray[np.float64], tolerance: float) -> int:
    """Find the column that is decided on by the means of some draws."""
    means = dict(zip(numbers, draws.mean(axis=0).tolist(), strict=True))
    return numbers.index(fewest_near_best(means, tolerance))


def _better(expected: NDArray[np.float64], chosen: int, other: int) -> float:
    """Compute the probability that a number is better than another one."""
    return float((expected[:, chosen] > expected[:, other]).mean())


def _reason(
    curve: Sequence[Point], columns: Sequence[int], chosen: int, available: int | None
) -> Chosen:
    """Compare the chosen point with the best of some columns, and with the best of all."""
    best = curve[_column(curve, columns, 0)]
    point, top = curve[chosen], curve[_column(curve, range(len(curve)), 0)]
    bandwidth_mib_s = point.bandwidth_mib_s.mean
    unavailable = None
    if available is not None and top.io_nodes > available:
        gain = top.bandwidth_mib_s.mean / bandwidth_mib_s - 1
        unavailable = Unavailable(top.io_nodes, gain, available)
    return Chosen(
        io_nodes=point.io_nodes,
        bandwidth_mib_s=bandwidth_mib_s,
        best_io_nodes=best.io_nodes,
        best_mib_s=best.bandwidth_mib_s.mean,
        compared=len(columns),
        is_limited=len(columns) < len(curve),
        unavailable=unavailable,
    )
