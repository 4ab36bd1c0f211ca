"""P09, P10: files that are read or written more than once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.overlaps import overlaps_of
from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, total
from ioncast_base.kinds import OPERATIONS, Operation


def repeated_bytes(case: Case, operation: Operation) -> Finding | None:
    """Look for files whose moved bytes exceed those that were moved at least once."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    files, limit = layer.used_files, case.thresholds.repeated_factor
    moved = layer.of_files(layer.of(operation).bytes)
    touched = distinct_bytes(case.facts, operation)[files]
    is_repeated = (touched > 0) & (moved > limit * touched)
    if not is_repeated.any():
        return None
    factor = np.where(is_repeated, moved / np.maximum(touched, 1), 0)
    count, worst = worst_files(case, files, factor)
    sieved = int((is_repeated & _is_sieved(case, operation, files, moved)).sum())
    variant = "partly" if sieved else ""
    if sieved == count:
        variant = _cause(case, operation, files[factor.argmax()])
    return Finding(
        "WARN",
        numbers={"files": count, "factor": worst[0].number, "sieved": sieved},
        thresholds={"repeated_factor": limit},
        files=worst,
        variant=variant,
        at_stake=case.times.part(
            "POSIX", operation, _repeated_shares(case, files[is_repeated], factor[is_repeated])
        ),
    )


def _repeated_shares(case: Case, files: Ints, factor: Floats) -> Floats:
    """The share of the bytes of each of `Facts.files` that was moved before."""
    repeated_shares = np.zeros(len(case.facts.files))
    repeated_shares[files] = 1 - 1 / factor
    return repeated_shares


def distinct_bytes(facts: Facts, operation: Operation) -> Ints:
    """Count each file's distinct moved bytes; without a whole trace, up to its highest offset."""
    extent = _extent(facts, operation)
    overlaps = overlaps_of(facts, operation)
    if overlaps is None:
        return extent
    touched = extent.copy()
    touched[overlaps.file] = overlaps.distinct_bytes
    return touched


def _extent(facts: Facts, operation: Operation) -> Ints:
    files = facts.files
    return files.read_extent_bytes if operation == "read" else files.written_extent_bytes


def _is_sieved(case: Case, operation: Operation, files: Ints, moved: Ints) -> Bools:
    """Tell for each file whether MPI-IO itself asked for so few bytes that it moved none twice."""
    mpiio = case.facts.layers.get("MPIIO")
    if mpiio is None:
        return np.zeros(len(files), bool)
    asked = np.full(len(case.facts.files), -1)
    asked[mpiio.used_files] = mpiio.of_files(mpiio.of(operation).bytes)
    limit = case.thresholds.repeated_factor
    is_sieved: Bools = (
        (asked[files] >= 0)
        & (asked[files] <= limit * _extent(case.facts, operation)[files])
        & (moved > limit * asked[files])
    )
    return is_sieved


def _cause(case: Case, operation: Operation, file: int) -> str:
    """Tell what moves too many bytes of a file: collective buffering, or sieving below its calls.

    If no call reads, both read before they write.
    """
    mpiio = case.facts.layers["MPIIO"]
    rows = mpiio.file == file
    calls = [mpiio.of(each) for each in OPERATIONS]
    together = sum(total((call.collective + call.split)[rows]) for call in calls)
    cause = (
        "buffering"
        if 2 * together > sum(total(call.requests[rows]) for call in calls)
        else "sieving"
    )
    only_writes = operation == "read" and not mpiio.reads.requests[rows].any()
    return f"{cause}_of_writes" if only_writes else cause


FINDERS: Mapping[str, Find] = {
    "P09": partial(repeated_bytes, operation="read"),
    "P10": partial(repeated_bytes, operation="write"),
}
