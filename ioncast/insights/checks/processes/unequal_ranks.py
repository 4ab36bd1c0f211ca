"""P18, P19, P21, P22: processes take part unequally in a shared file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.slowest_ranks import bytes_of_single_ranks
from ioncast.insights.facts.values import Floats
from ioncast_base.kinds import Operation


def bytes_of_the_slowest(case: Case) -> Finding | None:
    """P18: the slowest and the fastest process move different amounts of bytes."""
    limit = case.thresholds.slowest_bytes_share
    found = case.shared_files
    part = _shares(np.abs(found.slowest.bytes - found.fastest.bytes), found.bytes)
    files, named = worst_files(case, found.file, part, least=limit)
    if not files:
        return None
    worst = int(np.argmax(part))
    return Finding(
        "HIGH",
        numbers={
            "files": files,
            "share": float(part[worst]),
            "slowest_bytes": int(found.slowest.bytes[worst]),
            "fastest_bytes": int(found.fastest.bytes[worst]),
            "rank": int(found.slowest.rank[worst]),
        },
        thresholds={"slowest_bytes_share": limit},
        files=named,
        ranks=(int(found.slowest.rank[worst]),),
    )


def time_of_the_slowest(case: Case) -> Finding | None:
    """P19: the slowest process takes much longer than the fastest one."""
    limits = case.thresholds
    found = case.shared_files
    difference = found.slowest.seconds - found.fastest.seconds
    is_long = difference > limits.slowest_seconds
    part = np.where(is_long, _shares(difference, found.seconds), 0.0)
    files, named = worst_files(case, found.file, part, least=limits.slowest_time_share)
    if not files:
        return None
    worst = int(np.argmax(part))
    slowest = float(found.slowest.seconds[worst])
    mean = float(found.seconds[worst] / found.processes[worst])
    return Finding(
        "HIGH",
        numbers={
            "files": files,
            "share": float(part[worst]),
            "rank": int(found.slowest.rank[worst]),
            "seconds": slowest,
            "fastest_seconds": float(found.fastest.seconds[worst]),
            "above_mean_share": (slowest - mean) / slowest,
        },
        thresholds={
            "slowest_time_share": limits.slowest_time_share,
            "slowest_seconds": limits.slowest_seconds,
        },
        files=named,
        ranks=(int(found.slowest.rank[worst]),),
    )


def bytes_of_ranks(case: Case, operation: Operation) -> Finding | None:
    """P21, P22: the processes with records of their own move different amounts of bytes."""
    limit = case.thresholds.rank_bytes_share
    nothing = np.zeros(0, np.int64)
    columns = [(nothing, nothing, nothing), *bytes_of_single_ranks(case.facts, operation)]
    file, most, fewest = (np.concatenate(each) for each in zip(*columns, strict=True))
    part = _shares(most - fewest, most)
    files, named = worst_files(case, file, part, least=limit)
    if not files:
        return None
    worst = int(np.argmax(part))
    return Finding(
        "HIGH",
        numbers={
            "files": files,
            "share": float(part[worst]),
            "most_bytes": int(most[worst]),
            "fewest_bytes": int(fewest[worst]),
        },
        thresholds={"rank_bytes_share": limit},
        files=named,
    )


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Divide; 0 where there is nothing to divide by."""
    found: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)
    return found


FINDERS: Mapping[str, Find] = {
    "P18": bytes_of_the_slowest,
    "P19": time_of_the_slowest,
    "P21": partial(bytes_of_ranks, operation="write"),
    "P22": partial(bytes_of_ranks, operation="read"),
}
