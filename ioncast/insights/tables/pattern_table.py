"""Table 2, pattern: order and alignment of requests (Carns et al. 2009, Tables III and IVc)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Requests
from ioncast.insights.tables.scopes import LayerScope, Scope
from ioncast.insights.tables.values import Line, Table, known

UNALIGNED = "unaligned in the file"
_PARTLY = "of files with a known block size"
_NOT_ALIGNABLE = "not known"


def pattern(scope: Scope) -> Table:
    """Tell in which order, and how aligned, the requests of each layer are.

    The order has shares of reads, of writes, or of both; all else of both, as Darshan counts it.
    """
    lines: list[Line] = []
    for layer in scope.layers():
        api = layer.layer.api
        lines += _requests(layer)
        if api == "POSIX":
            lines += [*_order(layer), *_moves(layer), *alignment(layer)]
        if api != "STDIO":
            switches = layer.count("RW_SWITCHES")
            name = "alternations of reads and writes"
            lines.append(layer.line(name, switches, wholes=_all(layer), of="requests"))
        if api == "MPIIO":
            lines.append(layer.line("views", layer.count("VIEWS")))
    return Table("pattern", "Pattern", tuple(lines))


def _all(layer: LayerScope) -> NDArray[Any]:
    return layer.sum(layer.layer.reads.requests + layer.layer.writes.requests)


def _requests(layer: LayerScope) -> Iterator[Line]:
    whole = _all(layer)
    for name, requests in (("reads", layer.layer.reads), ("writes", layer.layer.writes)):
        values = layer.sum(requests.requests)
        yield layer.line(name, values, wholes=whole, of="requests")
    if layer.layer.api != "STDIO":
        for name, requests in (("reads", layer.layer.reads), ("writes", layer.layer.writes)):
            small, of = layer.sum(requests.small), layer.sum(requests.requests)
            yield layer.line(f"{name} below 1 MiB", small, wholes=of, of=name)


def _order(layer: LayerScope) -> Iterator[Line]:
    """Count consecutive, sequential and random requests, of both operations and of each."""
    both = (layer.layer.reads, layer.layer.writes)
    scopes = (("requests", both), ("reads", both[:1]), ("writes", both[1:]))
    asked = {of: _added(layer, "requests", operations) for of, operations in scopes}
    for kind in ("consecutive", "sequential"):
        for of, operations in scopes:
            values = _added(layer, kind, operations)
            yield layer.line(_named(kind, of), values, wholes=asked[of], of=of)
    for of, operations in scopes:
        random = _added(layer, "random", operations)
        # Without a request that can have an order, none is random.
        orderable = np.maximum(1, asked[of] - _added(layer, "first", operations))
        whole = np.where(asked[of] > 0, orderable, 0)
        yield layer.line(
            _named("random", of), random, wholes=whole, of=f"{of} after the first", notes="at least"
        )


def _added(layer: LayerScope, column: str, operations: Sequence[Requests]) -> NDArray[Any]:
    return layer.sum(np.sum([getattr(operation, column) for operation in operations], axis=0))


def _named(kind: str, of: str) -> str:
    return kind if of == "requests" else f"{kind} {of}"


def _moves(layer: LayerScope) -> Iterator[Line]:
    """Count seeks; without any (pread, pwrite), requests that do not follow the one before.

    Programs may seek without a request after it, so there may be more seeks than requests.
    """
    values = layer.layer
    requests = values.reads.requests + values.writes.requests
    consecutive = values.reads.consecutive + values.writes.consecutive
    elsewhere = layer.sum(np.maximum(requests - consecutive - 1, 0))
    seeks, whole = layer.count("SEEKS"), _all(layer)
    has_seeks = seeks > 0
    for name, count, present, notes in (
        ("preceded by a seek", np.minimum(seeks, whole), has_seeks, "at most"),
        ("moved elsewhere first, without a seek", elsewhere, ~has_seeks, ""),
    ):
        yield layer.line(name, count, among=present, wholes=whole, of="requests", notes=notes)


def alignment(layer: LayerScope) -> Iterator[Line]:
    """Count unaligned requests in files whose block size is known, and in memory."""
    records = layer.layer
    requests = records.reads.requests + records.writes.requests
    has_boundary = records.count("FILE_ALIGNMENT") > 0
    unaligned = layer.sum(records.count("FILE_NOT_ALIGNED") * has_boundary)
    whole, asked = layer.sum(requests * has_boundary), _all(layer)
    is_known = layer.sum(has_boundary.astype(np.int64)) > 0
    notes = np.where(is_known, np.where(whole < asked, _PARTLY, ""), _NOT_ALIGNABLE)
    for name, count in (
        ("aligned in the file", np.maximum(whole - unaligned, 0)),
        (UNALIGNED, unaligned),
    ):
        values = known(count, is_known)
        yield layer.line(name, values, wholes=whole, of="requests", notes=notes)
    in_memory = layer.count("MEM_NOT_ALIGNED")
    yield layer.line("unaligned in memory", in_memory, wholes=asked, of="requests")
