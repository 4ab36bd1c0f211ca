"""P17, I02: much time in metadata."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding
from ioncast.insights.facts.rank_times import rank_seconds
from ioncast.insights.facts.values import Bools, Floats, Layer, share

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
        return Finding("HIGH", numbers, thresholds, ranks=ranks)
    if mean > limit:
        return Finding("HIGH", numbers, thresholds, variant="unnamed")
    return None


def metadata_share(case: Case) -> Finding | None:
    """I02: metadata take more of the I/O time than in nine of ten runs."""
    layers = _layers(case)
    metadata, together = (
        rank_seconds((layer, seconds(layer) * _has_data(case, layer)) for layer in layers)
        for seconds in (_metadata, _io)
    )
    part = share(metadata.total_seconds, together.total_seconds)
    limit = case.thresholds.metadata_share
    if part is None or part <= limit:
        return None
    numbers: dict[str, float | str] = {
        "share": part,
        "seconds": metadata.total_seconds,
        "io_seconds": together.total_seconds,
    }
    missing = case.thresholds.missing_share * together.total_seconds
    if together.reduced_seconds >= missing or not len(together.rank):
        return Finding("WARN", numbers, {"metadata_share": limit})
    slowest = int(np.argmax(together.seconds))
    own = share(float(metadata.seconds[slowest]), float(together.seconds[slowest]))
    numbers |= {"rank": int(together.rank[slowest]), "slowest_share": own or 0.0}
    return Finding("WARN", numbers, {"metadata_share": limit}, variant="slowest")


def _layers(case: Case) -> list[Layer]:
    return [layer for api, layer in case.facts.layers.items() if api in _LAYERS]


def _metadata(layer: Layer) -> Floats:
    return layer.metadata_seconds


def _io(layer: Layer) -> Floats:
    return layer.metadata_seconds + layer.reads.seconds + layer.writes.seconds


def _has_data(case: Case, layer: Layer) -> Bools:
    """Tell for each record whether its file has data that the program read or wrote."""
    found: Bools = case.facts.files.bytes[layer.file] > 0
    return found


FINDERS: Mapping[str, Find] = {"P17": metadata_time, "I02": metadata_share}
