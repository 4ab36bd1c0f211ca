"""M01 to M07: no MPI-IO, and its independent, collective and blocking calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.interleaving import differs_from_calls, interleaved_files
from ioncast.insights.facts.values import Layer, total
from ioncast_base.kinds import OPERATIONS, Operation


def no_mpiio(case: Case) -> Finding | None:
    """M01: several processes move bytes without MPI-IO."""
    run, moved = case.facts.run, total(case.facts.files.bytes)
    if run.processes < 2 or run.has("MPI-IO") or not moved:
        return None
    return Finding("WARN", numbers={"processes": run.processes, "bytes": moved})


def only_independent(case: Case, operation: Operation) -> Finding | None:
    """M02, M03: many independent calls and none that is collective.

    Collective calls join small requests that lie between those of other processes. They bring
    nothing to contiguous calls of 1 MiB and more.
    """
    layer, limits = case.facts.layers.get("MPIIO"), case.thresholds
    if layer is None:
        return None
    calls = layer.of(operation)
    independent = total(calls.independent)
    if calls.collective.any() or calls.split.any() or independent <= limits.least_count:
        return None
    own = layer.of_files(calls.independent)
    both = sum(layer.of_files(layer.of(each).independent) for each in OPERATIONS)
    named = (own > limits.independent_share * both) & (own > limits.least_count)
    files, worst = worst_files(case, layer.used_files, np.where(named, own, 0), independent)
    variant = _variant(case, layer, operation)
    return Finding(
        "INFO" if variant == "large" else "HIGH",
        numbers={"independent": independent, "files": files},
        thresholds={
            "least_count": limits.least_count,
            "independent_share": limits.independent_share,
            "small_share": limits.small_share,
        },
        files=worst,
        variant=variant,
    )


def _variant(case: Case, layer: Layer, operation: Operation) -> str:
    """Choose the advice by the calls in files whose calls are small, or moved in pieces."""
    calls, facts, files = layer.of(operation), case.facts, layer.used_files
    least = case.thresholds.small_share * layer.of_files(calls.requests)
    harms = (layer.of_files(calls.small) > least) | differs_from_calls(facts, operation)[files]
    independent = np.where(harms, layer.of_files(calls.independent), 0)
    if total(independent) <= case.thresholds.least_count:
        return "large"
    joined = interleaved_files(facts, operation)[files]
    return "larger" if 2 * total(independent[joined]) < total(independent) else ""


def collective(case: Case, operation: Operation) -> Finding | None:
    """M04, M05: collective calls."""
    layer = case.facts.layers.get("MPIIO")
    if layer is None:
        return None
    calls = layer.of(operation)
    together = total(calls.collective) + total(calls.split)
    if not together:
        return None
    all_ = together + total(calls.independent)
    return Finding("OK", numbers={"collective": together, "share": together / all_})


def only_blocking(case: Case, operation: Operation) -> Finding | None:
    """M06, M07: calls that all wait for their data."""
    layer = case.facts.layers.get("MPIIO")
    if layer is None:
        return None
    calls = layer.of(operation)
    blocking = total(calls.independent) + total(calls.collective)
    if not blocking or calls.nonblocking.any() or calls.split.any():
        return None
    return Finding("WARN", numbers={"blocking": blocking})


FINDERS: Mapping[str, Find] = {
    "M01": no_mpiio,
    "M02": partial(only_independent, operation="read"),
    "M03": partial(only_independent, operation="write"),
    "M04": partial(collective, operation="read"),
    "M05": partial(collective, operation="write"),
    "M06": partial(only_blocking, operation="read"),
    "M07": partial(only_blocking, operation="write"),
}
