"""Rows of the tables `request_sizes`, `requests` and `file_servers`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ioncast.warehouse.arrays import INDEX, Columns, named
from ioncast.warehouse.file_rows import FilesOfRuns
from ioncast_base.kinds import APIS, OPERATIONS
from summario.lustre_components import LustreComponents
from summario.lustre_servers import bytes_of_servers
from summario.phases.streams import changes
from summario.reading.layouts import SIZE_BINS
from summario.reading.operations import UNKNOWN_OFFSET, Operations

# The first bins that have only requests below 1 MiB, and the one that also has some of 1 MiB.
_SMALL_BINS = SIZE_BINS.index("100K_1M")
# A trace of one request in each of thousands of stripes has as many rows.
_AT_ONCE = 100_000


def request_size_rows(files: FilesOfRuns) -> Iterator[Columns]:
    """Yield the rows of each api and operation: of ten bins of each run those with requests."""
    for api, layer in files.facts.layers.items():
        run = files.run[layer.file]
        [first] = changes(run).nonzero()
        for operation in OPERATIONS if api != "STDIO" else ():
            of = layer.of(operation)
            counts = np.add.reduceat(of.histogram, first)
            small = counts.copy()
            known_small = counts[:, :_SMALL_BINS].sum(axis=1)
            small[:, _SMALL_BINS] = np.maximum(np.add.reduceat(of.small, first) - known_small, 0)
            small[:, _SMALL_BINS + 1 :] = 0
            place, bin_ = counts.nonzero()
            yield {
                INDEX: run[first][place],
                "api": named((api,), np.zeros(len(place), np.int8)),
                "operation": named((operation,), np.zeros(len(place), np.int8)),
                "bin": named(SIZE_BINS, bin_),
                "requests": counts[place, bin_],
                "small": small[place, bin_],
            }


def request_rows(trace: Operations) -> Columns:
    """Make a row of each traced request."""
    hosts = np.array([*trace.hosts, ""], dtype=object)
    files = {each: f"{each:016x}" for each in np.unique(trace.file_id).tolist()}
    return {
        "id": np.arange(len(trace)),
        "api": np.array(APIS, dtype=object)[trace.api],
        "operation": np.array(OPERATIONS, dtype=object)[trace.operation],
        "file": np.array([files[each] for each in trace.file_id.tolist()], dtype=object),
        "rank": trace.rank,
        "node": [each or None for each in hosts[trace.host].tolist()],
        "offset_bytes": pa.array(trace.offset, mask=trace.offset == UNKNOWN_OFFSET),
        "length_bytes": trace.length,
        "start_seconds": trace.start_seconds,
        "end_seconds": trace.end_seconds,
    }


def file_server_rows(lustre: LustreComponents | None, trace: Operations) -> Columns:
    """Add up the traced bytes of each file and api on each server (OST); none without a layout."""
    found: dict[tuple[int, int, int], int] = {}
    for first in range(0, len(trace) if lustre is not None else 0, _AT_ONCE):
        assert lustre is not None  # noqa: S101
        part = trace.take(slice(first, first + _AT_ONCE))
        on = bytes_of_servers(lustre, part.file_id, part.offset, part.length)
        keys = part.file_id[on.segment], part.api[on.segment], on.ost
        rows = zip(*(each.tolist() for each in (*keys, on.bytes)), strict=True)
        for file, api, ost, moved in rows:
            found[file, api, ost] = found.get((file, api, ost), 0) + moved
    return {
        "file": [f"{file:016x}" for file, _, _ in found],
        "api": [APIS[api] for _, api, _ in found],
        "server": [None if ost < 0 else ost for _, _, ost in found],
        "bytes": list(found.values()),
    }
