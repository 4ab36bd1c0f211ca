"""M01 to M07: no MPI-IO, and its independent, collective and blocking calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ioncast.insights.checks.asynchronous import hidden_seconds
from ioncast.insights.checks.concerned import time_of_requests, worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.interleaving import differs_from_calls, interleaved_files
from ioncast.insights.facts.values import Bools, Floats, Ints, Layer, total
from ioncast_base.kinds import OPERATIONS, Operation
from summario.reading.dxt import DXT_MODULES


def no_mpiio(case: Case) -> Finding | None:
    """M01: several processes move bytes without MPI-IO."""
    run, moved = case.facts.run, total(case.facts.files.bytes)
    if run.processes < 2 or run.has("MPI-IO") or not moved:
        return None
    small, seconds = _joined_requests(case)
    return Finding(
        "WARN",
        numbers={"processes": run.processes, "bytes": moved, "small": small},
        at_stake=seconds,
        variant="small" if small else "",
    )


def _joined_requests(case: Case) -> tuple[int, Floats]:
    """The small requests that collective calls would join, and the time that they take."""
    seconds, count = np.zeros_like(case.times.seconds), 0
    layer = case.facts.layers.get("POSIX")
    if layer is not None:
        for operation in OPERATIONS:
            joined = interleaved_files(case.facts, operation)[layer.used_files]
            small = np.where(joined, layer.of_files(layer.of(operation).small), 0)
            count += total(small)
            seconds += time_of_requests(case, layer, operation, small)
    return count, seconds


def only_independent(case: Case, operation: Operation) -> Finding | None:
    """M02, M03: many independent calls of shared files, and no collective call.

    Collective calls join small requests that lie between those of other processes. They bring
    nothing to contiguous calls of 1 MiB and more.
    """
    layer, limits = case.facts.layers.get("MPIIO"), case.thresholds
    if layer is None:
        return None
    calls = layer.of(operation)
    # A file that one process uses has nobody to join calls with.
    own = np.where(layer.file_is_shared(), layer.of_files(calls.independent), 0)
    independent = total(own)
    if calls.collective.any() or calls.split.any() or independent <= limits.least_count:
        return None
    both = sum(layer.of_files(layer.of(each).independent) for each in OPERATIONS)
    named = (own > limits.independent_share * both) & (own > limits.least_count)
    files, worst = worst_files(case, layer.used_files, np.where(named, own, 0), independent)
    harmful = np.where(_harms(case, layer, operation), own, 0)
    variant = _variant(case, layer, operation, harmful)
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
        at_stake=None if variant == "large" else _time_of(case, layer, operation, harmful),
    )


def _harms(case: Case, layer: Layer, operation: Operation) -> Bools:
    """Tell for each used file whether its calls are small, or moved in pieces."""
    calls = layer.of(operation)
    least = case.thresholds.small_share * layer.of_files(calls.requests)
    differs = differs_from_calls(case.facts, operation)[layer.used_files]
    harms: Bools = (layer.of_files(calls.small) > least) | differs
    return harms


def _variant(case: Case, layer: Layer, operation: Operation, harmful: Ints) -> str:
    """Choose the advice by the number of harmful calls of each file."""
    if total(harmful) <= case.thresholds.least_count:
        return "large"
    joined = interleaved_files(case.facts, operation)[layer.used_files]
    return "larger" if 2 * total(harmful[joined]) < total(harmful) else ""


def _time_of(case: Case, layer: Layer, operation: Operation, calls: Ints) -> Floats:
    """The time of some calls of MPI-IO."""
    shares = np.zeros(len(case.facts.files))
    shares[layer.used_files] = calls / np.maximum(layer.of_files(layer.of(operation).requests), 1)
    return case.times.part("MPIIO", operation, shares)


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
    is_whole = not case.facts.run.is_partial(*DXT_MODULES.values())
    traced = case.trace_phases.get("MPIIO") if is_whole else None
    hidden = hidden_seconds(case.facts, case.times, operation, traced)
    where = np.zeros_like(case.times.seconds, bool)
    where[OPERATIONS.index(operation), layer.used_files] = True
    return Finding(
        "WARN",
        numbers={"blocking": blocking},
        at_stake=case.times.spread(hidden, where),
    )


FINDERS: Mapping[str, Find] = {
    "M01": no_mpiio,
    "M02": partial(only_independent, operation="read"),
    "M03": partial(only_independent, operation="write"),
    "M04": partial(collective, operation="read"),
    "M05": partial(collective, operation="write"),
    "M06": partial(only_blocking, operation="read"),
    "M07": partial(only_blocking, operation="write"),
}
