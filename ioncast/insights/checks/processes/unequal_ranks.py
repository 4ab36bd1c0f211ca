"""P18, P19, P21, P22: processes take part unequally in a shared file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.stakes import seconds_at_stake
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.slowest_ranks import bytes_of_single_ranks
from ioncast.insights.facts.values import Bools, Floats, Ints
from ioncast_base.kinds import APIS, Operation

# No compute node has more, so such a run has several.
_MOST_PROCESSES_OF_A_NODE = 256


def bytes_of_the_slowest(case: Case) -> Finding | None:
    """P18: the slowest and the fastest process move different amounts of bytes.

    Below MPI-IO only aggregators move bytes, so there only one process for all nodes counts.
    """
    above, below = _unequal_bytes(case), _one_process_below_mpiio(case)
    if above is None or below is None:
        return above or below
    return max(above, below, key=lambda each: seconds_at_stake(each) or 0.0)


def _unequal_bytes(case: Case) -> Finding | None:
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
        at_stake=case.times.above_file_mean(_named(case, found.file[part > limit])),
    )


def _one_process_below_mpiio(case: Case) -> Finding | None:
    """Look for files of several compute nodes whose bytes pass one process below MPI-IO."""
    facts, limits = case.facts, case.thresholds
    layer = facts.layers.get("POSIX")
    several = facts.run.processes > _MOST_PROCESSES_OF_A_NODE
    if facts.nodes is not None:
        several = facts.nodes.number > 1
    if layer is None or not several:
        return None
    moved = (layer.reads.bytes + layer.writes.bytes).astype(np.float64)
    most = np.where(layer.is_reduced, np.minimum(layer.count("SLOWEST_RANK_BYTES"), moved), moved)
    ranks = np.where(layer.is_reduced, layer.count("SLOWEST_RANK") + layer.first_rank, layer.rank)
    files, all_ = layer.used_files, layer.of_files(moved)
    part = _shares(layer.of_files(most, np.maximum), all_)
    below = (facts.files.api[files] == APIS.index("MPIIO")) & (facts.files.processes[files] > 1)
    # A log file or a header has too few bytes to share them out.
    below &= all_ > limits.rank_0_bytes
    least = 1 - limits.missing_share
    count, named = worst_files(case, files, np.where(below, part, 0), least=least)
    if not count:
        return None
    concerned = files[below & (part > least)]
    worst = int(concerned[np.argmax(all_[np.searchsorted(files, concerned)])])
    rows = np.flatnonzero(layer.file == worst)
    times = case.times.layers["POSIX"]
    return Finding(
        "HIGH",
        numbers={
            "files": count,
            "share": named[0].number,
            "rank": int(ranks[rows[np.argmax(most[rows])]]),
            "processes": int(facts.files.processes[worst]),
            "bytes": int(moved[rows].sum()),
        },
        thresholds={"missing_share": limits.missing_share, "rank_0_bytes": limits.rank_0_bytes},
        files=named,
        ranks=(int(ranks[rows[np.argmax(most[rows])]]),),
        variant="below",
        at_stake=times * _named(case, concerned) * (1 - 1 / facts.run.processes),
    )


def _named(case: Case, files: Ints) -> Bools:
    found = np.zeros(len(case.facts.files), bool)
    found[files] = True
    return found


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
        at_stake=case.times.above_file_mean(
            _named(case, found.file[part > limits.slowest_time_share])
        ),
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
        at_stake=case.times.above_file_mean(_named(case, file[part > limit])),
    )


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Divide; 0 where there is nothing to divide by."""
    shares: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)
    return shares


FINDERS: Mapping[str, Find] = {
    "P18": bytes_of_the_slowest,
    "P19": time_of_the_slowest,
    "P21": partial(bytes_of_ranks, operation="write"),
    "P22": partial(bytes_of_ranks, operation="read"),
}
