"""P07, P08: requests that are not aligned, in memory and in the file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.concerned import time_of_requests, worst_files
from ioncast.insights.checks.values import Case, Find, Finding, Result, Unknown
from ioncast.insights.facts.values import Floats, Ints, Layer, share, total
from ioncast_base.kinds import OPERATIONS


def in_memory(case: Case) -> Finding | None:
    """P07: buffers that do not begin at a multiple of the memory's alignment."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    unaligned, all_ = total(layer.count("MEM_NOT_ALIGNED")), total(_requests(layer))
    part, limit = share(unaligned, all_), case.thresholds.unaligned_share
    if part is None or part <= limit:
        return None
    return Finding(
        "HIGH",
        numbers={"unaligned": unaligned, "requests": all_, "share": part},
        thresholds={"unaligned_share": limit},
    )


def in_file(case: Case) -> Result:
    """P08: offsets that are not multiples of the file system's block size, where it is known."""
    layer = case.facts.layers.get("POSIX")
    if layer is None or not _requests(layer).any():
        return None
    # Darshan writes -1 for an alignment that it does not know, and counts nothing there.
    known = layer.count("FILE_ALIGNMENT") > 0
    requests, unaligned = (
        np.where(known, counts, 0) for counts in (_requests(layer), layer.count("FILE_NOT_ALIGNED"))
    )
    all_ = total(requests)
    if not all_:
        return Unknown("the log does not tell the alignment of the files")
    part, limit = total(unaligned) / all_, case.thresholds.unaligned_share
    if part <= limit:
        return None
    files, worst = worst_files(case, layer.used_files, layer.of_files(unaligned), all_)
    return Finding(
        "HIGH",
        numbers={
            "unaligned": total(unaligned),
            "requests": all_,
            "share": part,
            "files": files,
            "boundary_bytes": _most_common(layer.count("FILE_ALIGNMENT"), unaligned),
        },
        thresholds={"unaligned_share": limit},
        files=worst,
        variant=_variant(case, layer, unaligned),
        at_stake=_time_of_edges(case, layer, unaligned),
        is_estimate=True,
    )


def _time_of_edges(case: Case, layer: Layer, unaligned: Ints) -> Floats:
    """Estimate the time of the edges of unaligned requests, which touch two blocks only in part.

    A request's time is shared out evenly over its blocks. Small requests are a cause of their own.
    """
    requests = _requests(layer)
    large = np.maximum(requests - layer.reads.small - layer.writes.small, 0)
    part = np.minimum(unaligned, large) / np.maximum(large, 1)
    size = (layer.reads.bytes + layer.writes.bytes) / np.maximum(requests, 1)
    block = layer.count("FILE_ALIGNMENT")
    edges = np.minimum(2 * block / np.maximum(size + block, 1), 1)
    seconds = np.zeros_like(case.times.seconds)
    for operation in OPERATIONS:
        own = layer.of(operation)
        concerned = np.maximum(own.requests - own.small, 0) * part * edges
        seconds += time_of_requests(case, layer, operation, layer.of_files(concerned))
    return seconds


def _variant(case: Case, layer: Layer, unaligned: Ints) -> str:
    """Choose the advice by the requests in files with unaligned ones: reads, writes or both.

    Most of them may be made by the aggregators of MPI-IO, for which the program has only hints.
    """
    by_aggregators = np.isin(layer.file, case.collectives.aggregated.file)
    if 2 * total(unaligned[by_aggregators]) > total(unaligned):
        return "aggregators"
    all_ = total(_requests(layer)[unaligned > 0])
    for requests, only_others in ((layer.reads, "writes"), (layer.writes, "reads")):
        if total(requests.requests[unaligned > 0]) <= case.thresholds.unaligned_share * all_:
            return only_others
    return ""


def _requests(layer: Layer) -> Ints:
    return layer.reads.requests + layer.writes.requests


def _most_common(values: Ints, weights: Ints) -> int:
    """Find the value with the largest weight in all."""
    distinct, places = np.unique(values, return_inverse=True)
    return int(distinct[np.bincount(places, weights).argmax()])


FINDERS: Mapping[str, Find] = {"P07": in_memory, "P08": in_file}
