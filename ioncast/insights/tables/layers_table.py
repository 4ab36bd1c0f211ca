"""Table 5, layers: requests and bytes at each layer (Carns et al. 2009, Table VI)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Bools
from ioncast.insights.tables.pattern_table import UNALIGNED, alignment
from ioncast.insights.tables.scopes import LayerScope, Scope
from ioncast.insights.tables.times_table import time_per_process
from ioncast.insights.tables.values import Line, Table, quotient
from ioncast_base.kinds import OPERATIONS, Operation

_ONLY_BELOW = "only below"
_NO_POSIX = "not known: the files have no POSIX records"
_NO_REQUESTS = "not known: POSIX has no such requests"


def layers(scope: Scope) -> Table:
    """Compare the layers: requests, bytes, and how MPI-IO changed them on their way to POSIX."""
    lines = [line for layer in scope.layers() for line in _requests(layer)]
    mpiio = scope.layer("MPIIO")
    if mpiio is not None:
        for operation in OPERATIONS:
            lines += _between_layers(mpiio, operation)
    return Table("layers", "Layers", (*lines, *_run(scope)))


def _run(scope: Scope) -> Iterator[Line]:
    run = scope.facts.run
    if not scope.by_file:
        yield Line("", "processes", np.array([run.processes]))
        yield Line("", "run time", np.array([run.run_seconds]), "seconds")


def _requests(layer: LayerScope) -> Iterator[Line]:
    values = layer.layer
    yield layer.line("writes", layer.sum(values.writes.requests))
    yield layer.line("reads", layer.sum(values.reads.requests))
    if values.api == "POSIX":
        yield next(line for line in alignment(layer) if line.name == UNALIGNED)
    yield layer.line("bytes written", layer.sum(values.writes.bytes), unit="bytes")
    yield layer.line("bytes read", layer.sum(values.reads.bytes), unit="bytes")
    yield time_per_process(layer, "time per process")


def _between_layers(mpiio: LayerScope, operation: Operation) -> Iterator[Line]:
    """Compare an operation at MPI-IO with POSIX, of the files that have records of both."""
    above, below = mpiio.layer.of(operation), _below(mpiio, operation)
    is_compared = below.is_through[mpiio.layer.file]
    moved, calls = (mpiio.sum(each * is_compared) for each in (above.bytes, above.requests))
    is_only_below = (moved == 0) & (below.bytes > 0)
    yield mpiio.line(
        f"amplification of {operation}s",
        np.where(below.has_records, quotient(below.bytes, moved), np.nan),
        unit="times",
        among=(mpiio.sum(above.bytes) > 0) | is_only_below,
        notes=np.select([is_only_below, ~below.has_records], [_ONLY_BELOW, _NO_POSIX], ""),
    )
    yield mpiio.line(f"{operation} only below", below.bytes, unit="bytes", among=is_only_below)
    yield mpiio.line(
        f"aggregation of {operation}s",
        quotient(calls, below.requests),
        unit="times",
        among=mpiio.sum(above.requests) > 0,
        notes=np.select([~below.has_records, below.requests == 0], [_NO_POSIX, _NO_REQUESTS], ""),
    )


@dataclass(frozen=True)
class _Below:
    """The POSIX requests, of one operation, to files that were used through MPI-IO.

    `is_through` tells for each of the run's files whether it is such a file and has POSIX records,
    `has_records` for each group whether it has such files.
    """

    is_through: Bools
    has_records: Bools
    requests: NDArray[Any]
    bytes: NDArray[Any]


def _below(mpiio: LayerScope, operation: Operation) -> _Below:
    scope = mpiio.scope
    posix = scope.layer("POSIX")
    if posix is None:
        nothing = np.zeros(len(scope), np.int64)
        return _Below(np.zeros(len(scope.facts.files), bool), nothing > 0, nothing, nothing)
    layer = mpiio.layer
    is_used = layer.reads.requests + layer.writes.requests > 0
    is_through, has_posix = np.zeros((2, len(scope.facts.files)), bool)
    is_through[layer.file[is_used]] = True
    has_posix[posix.layer.used_files] = True
    rows = is_through[posix.layer.file]
    requests = posix.layer.of(operation)
    return _Below(
        is_through=is_through & has_posix,
        has_records=posix.sum(rows.astype(np.int64)) > 0,
        requests=posix.sum(requests.requests * rows),
        bytes=posix.sum(requests.bytes * rows),
    )
