"""Bandwidths that an application cannot have got from the file system of its system.

Logs of another machine have them, and runs whose data stayed in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioncast_base.wording import bandwidth

# A bandwidth is implausible if it is more than this many times the p90 of the expected interval.
# Real runs scatter less, even where the model extends the benchmarks: their intervals are wider.
IMPLAUSIBLE_FACTOR = 10.0


def is_implausible(bandwidth_mib_s: float, p90_mib_s: float) -> bool:
    """Tell whether a bandwidth is too high to be true.

    A bandwidth that is too low is plausible, because other jobs may slow a run down.

    Examples
    --------
    >>> is_implausible(584_253.0, 462.0), is_implausible(4_620.0, 462.0), is_implausible(1.0, 462.0)
    (True, False, False)
    """
    return bandwidth_mib_s > IMPLAUSIBLE_FACTOR * p90_mib_s


def is_implausible_beside(
    bandwidth_mib_s: float, io_nodes: int | None, curve: Sequence[tuple[int, float, float, float]]
) -> bool:
    """Tell the same of a bandwidth beside the curve of a decision.

    If the number of I/O nodes of the run is unknown or not in the curve, the highest p90 counts. A
    point of the curve is a number of I/O nodes, expected bandwidth, p10 and p90. Without points
    nothing is implausible.
    """
    p90_by_number = {n: p90 for n, _, _, p90 in curve}
    if not p90_by_number:
        return False
    p90 = p90_by_number.get(-1 if io_nodes is None else io_nodes, max(p90_by_number.values()))
    return is_implausible(bandwidth_mib_s, p90)


def impossible(bandwidth_mib_s: float, p90_mib_s: float) -> str:
    """Say that no number of I/O nodes gives a bandwidth, as a clause, and what would help."""
    return (
        f"a run got {bandwidth(bandwidth_mib_s)}, which is impossible here: with every number of"
        f" I/O nodes it is more than {IMPLAUSIBLE_FACTOR:g} times the {bandwidth(p90_mib_s)} that"
        " one run in ten should exceed (predict from the log of a run on this system whose data"
        " reached the file system)"
    )
