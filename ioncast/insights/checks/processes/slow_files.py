"""I08, I09: processes that are slow at equal bytes, and OSTs on which files are slow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding
from ioncast.insights.facts.ost_use import OstPieces, pieces_on_osts
from ioncast.insights.facts.slow_osts import slow_osts
from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, Layer
from ioncast_base.limits import LONGEST_SECONDS
from ioncast_base.visible_text import visible
from ioncast_base.wording import listed

# With fewer processes the median is the time of the slow one.
_FEWEST_PROCESSES = 3
# More names of hosts or OSTs tell a reader nothing.
_MOST_NAMES = 8


def slow_processes(case: Case) -> Finding | None:
    """I08: processes with files of their own take longer than others that move as many bytes."""
    limits = case.thresholds
    rank, seconds, moved = _of_ranks(case)
    if len(rank) < _FEWEST_PROCESSES:
        return None
    median = float(np.median(seconds))
    is_slow = (
        (seconds > limits.slow_process_factor * median)
        & (seconds - median > limits.slowest_seconds)
        & (moved <= (1 + limits.mean_share) * float(np.median(moved)))
    )
    if not is_slow.any():
        return None
    order = np.flatnonzero(is_slow)[np.argsort(-seconds[is_slow], kind="stable")]
    slow = rank[order]
    files = _files_of(case, slow)
    times = case.file_times.seconds
    count, named = worst_files(case, files, times[files])
    return Finding(
        "HIGH",
        numbers={
            "count": len(slow),
            "processes": len(rank),
            "rank": int(slow[0]),
            "seconds": float(seconds[order[0]]),
            "median_seconds": median,
            "files": count,
            "where": _where(case.facts, slow, files),
        },
        thresholds={
            "slow_process_factor": limits.slow_process_factor,
            "slowest_seconds": limits.slowest_seconds,
            "mean_share": limits.mean_share,
        },
        files=named,
        ranks=tuple(slow[:MOST_RANKS].tolist()),
        at_stake=case.times.above_run_mean(slow),
    )


def slow_servers(case: Case) -> Finding | None:
    """I09: the files on an OST are slower than the others."""
    facts, limits = case.facts, case.thresholds
    pieces = pieces_on_osts(facts)
    took = case.file_times.slowest_seconds
    counts = (facts.files.bytes > 0) & (took > 0)
    if pieces is None or not counts.any():
        return None
    rows = np.flatnonzero(counts)
    of_files = counts[pieces.file]
    found = slow_osts(
        facts.files.bytes[rows] / took[rows],
        np.searchsorted(rows, pieces.file[of_files]),
        pieces.ost[of_files],
        pieces.part[of_files],
        most_correlation=limits.ost_correlation,
        most_probability=limits.ost_probability,
    )
    if not found:
        return None
    worst = found[0]
    files = rows[worst.files]
    others = np.setdiff1d(rows, files)
    count, named = worst_files(case, files, took[files])
    on_it = np.zeros_like(case.times.seconds, bool)
    on_it[:, files] = True
    above = float(case.times.above_run_mean().sum())
    return Finding(
        "HIGH",
        numbers={
            "ost": worst.ost,
            "osts": len(found),
            "correlation": worst.correlation,
            "files": count,
            "median_seconds": float(np.median(took[files])),
            "other_median_seconds": float(np.median(took[others])),
        },
        thresholds={
            "ost_correlation": limits.ost_correlation,
            "ost_probability": limits.ost_probability,
        },
        files=named,
        at_stake=case.times.spread(above, on_it),
    )


def _of_ranks(case: Case) -> tuple[Ints, Floats, Floats]:
    """The time and the bytes of each process in files that only it uses."""
    nothing = np.zeros(0)
    columns: list[tuple[Ints, Floats, Floats]] = [(nothing.astype(np.int64), nothing, nothing)]
    for layer in case.facts.layers.values():
        rows = _own_rows(case, layer)
        together = layer.reads.seconds + layer.writes.seconds + layer.metadata_seconds
        own = (layer.reads.bytes + layer.writes.bytes).astype(np.float64)
        columns.append((layer.rank[rows], np.minimum(together[rows], LONGEST_SECONDS), own[rows]))
    rank, took, bytes_ = (np.concatenate(each) for each in zip(*columns, strict=True))
    ranks, place = np.unique(rank, return_inverse=True)
    seconds: Floats = np.bincount(place, took, len(ranks)).astype(np.float64)
    moved: Floats = np.bincount(place, bytes_, len(ranks)).astype(np.float64)
    # Rank 0 often has a log file beside the data of all.
    has_data = moved > 0
    return ranks[has_data].astype(np.int64), seconds[has_data], moved[has_data]


def _own_rows(case: Case, layer: Layer) -> Bools:
    """Select the records of files that one process uses, at their highest layer."""
    files = case.facts.files
    own_rows: Bools = files.highest(layer) & ~layer.is_reduced & (files.processes[layer.file] == 1)
    return own_rows


def _files_of(case: Case, ranks: Ints) -> Ints:
    found = [
        layer.file[_own_rows(case, layer) & np.isin(layer.rank, ranks)]
        for layer in case.facts.layers.values()
    ]
    return np.unique(np.concatenate(found))


def _where(facts: Facts, ranks: Ints, files: Ints) -> str:
    """Name the hosts of slow processes, or the OSTs of their files, if the log has them."""
    if (trace := facts.trace) is not None:
        hosts = {trace.hosts[index] for index in trace.host[np.isin(trace.rank, ranks)].tolist()}
        names = sorted(map(visible, hosts))
        return f"; on {_some(names)}" if names else ""
    pieces = pieces_on_osts(facts)
    if pieces is None:
        return ""
    return f"; their files are on {_some(_osts_of(pieces, files))}"


def _osts_of(pieces: OstPieces, files: Ints) -> list[str]:
    osts, count = np.unique(pieces.ost[np.isin(pieces.file, files)], return_counts=True)
    return [f"OST {osts[row]}" for row in np.argsort(-count, kind="stable").tolist()]


def _some(names: list[str]) -> str:
    shown = names[:_MOST_NAMES]
    return listed([*shown, f"{len(names) - len(shown)} more"] if len(names) > len(shown) else shown)


FINDERS: Mapping[str, Find] = {"I08": slow_processes, "I09": slow_servers}
