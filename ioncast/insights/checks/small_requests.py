"""P05, P06: many small requests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.values import Case, FileShare, Find, Finding
from ioncast.insights.facts.values import Layer, share, total
from ioncast_base.kinds import Operation

# A file is named if it has more than this part of the threshold's share of all requests.
_NAMED_PART = 0.5


def small_reads(case: Case) -> Finding | None:
    """P05: small reads in all files."""
    return _small(case, "read")


def small_writes(case: Case) -> Finding | None:
    """P06: small writes in all files."""
    return _small(case, "write")


def _small(case: Case, operation: Operation) -> Finding | None:
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    requests = layer.of(operation)
    small, all_ = total(requests.small), total(requests.requests)
    part = share(small, all_)
    limits = case.thresholds
    if part is None or part <= limits.small_share or small <= limits.least_count:
        return None
    return Finding(
        "HIGH",
        numbers={"small": small, "requests": all_, "share": part},
        thresholds={"small_share": limits.small_share, "least_count": limits.least_count},
        files=_files(case, layer, operation, all_),
    )


def _files(case: Case, layer: Layer, operation: Operation, all_: int) -> tuple[FileShare, ...]:
    counts = layer.of_files(layer.of(operation).small)
    least = _NAMED_PART * case.thresholds.small_share * all_
    named = [row for row in np.argsort(-counts, kind="stable") if counts[row] > least]
    paths = case.facts.files.path
    return tuple(
        FileShare(paths[layer.used_files[row]], int(counts[row]), counts[row] / all_)
        for row in named
    )


FINDERS: Mapping[str, Find] = {"P05": small_reads, "P06": small_writes}
