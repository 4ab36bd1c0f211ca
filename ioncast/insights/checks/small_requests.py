"""P05, P06, P15, P16: many small requests, in all files and in shared ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ioncast.insights.checks.concerned import time_of_requests, worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.interleaving import interleaved_files
from ioncast.insights.facts.values import Ints, share, total
from ioncast_base.kinds import Operation

# A file is named if it has more than this part of the threshold's share of all requests.
_NAMED_PART = 0.5


def small_requests(case: Case, operation: Operation, *, only_shared: bool) -> Finding | None:
    """Look for small requests of one operation."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    counted = layer.file_is_shared() if only_shared else np.ones(len(layer.used_files), bool)
    requests = layer.of(operation)
    small_of_files = layer.of_files(requests.small)[counted]
    small, all_ = total(small_of_files), total(layer.of_files(requests.requests)[counted])
    part, limits = share(small, all_), case.thresholds
    if part is None or part <= limits.small_share or small <= limits.least_count:
        return None
    least = _NAMED_PART * limits.small_share * all_
    files, worst = worst_files(case, layer.used_files[counted], small_of_files, all_, least)
    return Finding(
        "HIGH",
        numbers={"small": small, "requests": all_, "share": part, "files": files},
        thresholds={"small_share": limits.small_share, "least_count": limits.least_count},
        files=worst,
        variant=_variant(case, operation, small_of_files, layer.used_files[counted]),
        at_stake=time_of_requests(
            case, layer, operation, np.where(counted, layer.of_files(requests.small), 0)
        ),
    )


def _variant(case: Case, operation: Operation, small: Ints, files: Ints) -> str:
    """Choose the advice by the number of small requests of each file.

    Collective calls join small requests that lie between those of other processes. A part of a
    process itself needs larger requests.
    """
    facts = case.facts
    joined = interleaved_files(facts, operation)[files]
    if 2 * total(small[joined]) < total(small):
        return "larger"
    mpiio = facts.layers.get("MPIIO")
    if mpiio is None:
        return ""
    calls = mpiio.of(operation)
    has_collective = calls.collective.any() or calls.split.any()
    return "collective" if has_collective and not calls.independent.any() else ""


FINDERS: Mapping[str, Find] = {
    "P05": partial(small_requests, operation="read", only_shared=False),
    "P06": partial(small_requests, operation="write", only_shared=False),
    "P15": partial(small_requests, operation="read", only_shared=True),
    "P16": partial(small_requests, operation="write", only_shared=True),
}
