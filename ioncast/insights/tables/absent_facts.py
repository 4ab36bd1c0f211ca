"""Facts that a log does not have, in sentences: Darshan cannot tell them, or did not here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioncast.insights.facts.values import DAOS_MODULES, Facts, Layer
from ioncast_base.wording import counted, listed


def not_recorded(facts: Facts) -> tuple[str, ...]:
    """Say which facts of the tables this log does not have, and why."""
    return tuple(_sentences(facts))


def _sentences(facts: Facts) -> Iterator[str]:
    partial = [module.name for module in facts.run.modules if module.is_partial]
    if partial:
        yield (
            f"Darshan ran out of memory for {listed(partial)}: records are missing, so counts are"
            " lower bounds"
        )
    if not facts.run.run_seconds:
        yield "the log's start and end are the same, so times have no shares of the run time"
    others = [name for name in DAOS_MODULES if facts.run.has(name)]
    if others:
        yield f"the tables have no data that moved through {listed(others)}"
    if not facts.layers:
        yield "no file of the application has POSIX, MPI-IO or STDIO records"
    if "MPIIO" in facts.layers:
        yield from _of_mpiio(facts)
    if "STDIO" in facts.layers:
        yield ("STDIO: Darshan does not record sizes, strides, order and alignment of its requests")
    if "POSIX" in facts.layers:
        yield from _of_posix(facts.layers["POSIX"])


def _of_mpiio(facts: Facts) -> Iterator[str]:
    yield (
        "MPI-IO: Darshan 3 does not record datatypes, their sizes and extents; views and hints are"
        " counted instead"
    )
    yield "MPI-IO: Darshan does not record strides, order and alignment of its requests"
    if "POSIX" not in facts.layers:
        yield "POSIX: no records, so amplification and aggregation are not known"


def _of_posix(layer: Layer) -> Iterator[str]:
    unknown = layer.of_files(layer.count("FILE_ALIGNMENT") <= 0, np.logical_and)
    if unknown.any():
        yield (
            f"POSIX: the block size of the file system is not known for"
            f" {counted(int(unknown.sum()), 'file')}, so their alignment is not known"
        )
    if len(layer) > 1:
        yield (
            "POSIX and MPI-IO: Darshan keeps four sizes and strides of each file and process, so"
            " their counts are lower bounds"
        )
    if layer.is_reduced.any():
        yield (
            "POSIX: Darshan reduced the records of files that all processes opened, so only the"
            " fastest and the slowest process of each such file are known"
        )
