"""P17, I02: much time in metadata."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding
from ioncast.insights.facts.rank_times import rank_seconds
from ioncast.insights.facts.values import Floats, Layer, share

# MPI-IO calls POSIX, so its metadata time would count twice.
_LAYERS = ("POSIX", "STDIO")


def metadata_time(case: Case) -> Finding | None:
    """P17: a process spends long in metadata."""
    limit = case.thresholds.metadata_seconds
    found = rank_seconds((layer, layer.metadata_seconds) for layer in _layers(case))
    busy = np.flatnonzero(found.seconds > limit)
    busy = busy[np.argsort(-found.seconds[busy], kind="stable")]
    mean = found.total_seconds / case.facts.run.processes
    numbers = {"mean_seconds": mean, "total_seconds": found.total_seconds}
    thresholds = {"metadata_seconds": limit}
    if len(busy):
        ranks = tuple(found.rank[busy[:MOST_RANKS]].tolist())
        numbers |= {
            "count": len(busy),
            "limit": limit,
            "rank": ranks[0],
            "seconds": float(found.seconds[busy[0]]),
        }
        return Finding("HIGH", numbers, thresholds, ranks=ranks, at_stake=case.times.metadata())
    if mean > limit:
        at_stake = case.times.metadata()
        return Finding("HIGH", numbers, thresholds, variant="unnamed", at_stake=at_stake)
    return None


def metadata_share(case: Case) -> Finding | None:
    """I02: metadata take more of the I/O time than in nine of ten runs, and of the run time."""
    layers = _layers(case)
    metadata, together = (
        rank_seconds((layer, seconds(layer)) for layer in layers) for seconds in (_metadata, _io)
    )
    part, limits = share(metadata.total_seconds, together.total_seconds), case.thresholds
    if part is None or part <= limits.metadata_share or not _is_noticed(case):
        return None
    numbers: dict[str, float | str] = {
        "share": part,
        "seconds": metadata.total_seconds,
        "io_seconds": together.total_seconds,
    }
    thresholds = {"metadata_share": limits.metadata_share, "minor_share": limits.minor_share}
    at_stake = case.times.metadata()
    missing = limits.missing_share * together.total_seconds
    if together.reduced_seconds >= missing or not len(together.rank):
        return Finding("WARN", numbers, thresholds, at_stake=at_stake)
    slowest = int(np.argmax(together.seconds))
    own = share(float(metadata.seconds[slowest]), float(together.seconds[slowest]))
    numbers |= {"rank": int(together.rank[slowest]), "slowest_share": own or 0.0}
    return Finding("WARN", numbers, thresholds, variant="slowest", at_stake=at_stake)


def _is_noticed(case: Case) -> bool:
    """Tell whether metadata take a part of the run time; with missing records it is not known."""
    seconds = float(case.times.metadata().sum())
    return case.facts.is_incomplete or (
        seconds >= case.thresholds.minor_share * case.times.run_seconds
    )


def _layers(case: Case) -> list[Layer]:
    return [layer for api, layer in case.facts.layers.items() if api in _LAYERS]


def _metadata(layer: Layer) -> Floats:
    return layer.metadata_seconds


def _io(layer: Layer) -> Floats:
    return layer.metadata_seconds + layer.reads.seconds + layer.writes.seconds


FINDERS: Mapping[str, Find] = {"P17": metadata_time, "I02": metadata_share}
