"""Rows of the tables of requests: sizes, traced requests, and the servers of files and requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.warehouse.arrays import INDEX, Columns, hexadecimal, known, named, texts
from ioncast.warehouse.file_rows import FilesOfRuns
from ioncast_base.kinds import APIS, OPERATIONS
from summario.lustre_components import LustreComponents
from summario.lustre_servers import ServerBytes, bytes_of_requests, bytes_of_servers
from summario.phases.streams import changes
from summario.reading.file_ids import is_among
from summario.reading.layouts import SIZE_BINS
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.requests.calls import NO_CALL, CallsOfRequests

# The first bins that have only requests below 1 MiB, and the one that also has some of 1 MiB.
_SMALL_BINS = SIZE_BINS.index("100K_1M")


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


def request_rows(trace: Operations, calls: CallsOfRequests) -> Columns:
    """Make a row of each traced request, with its MPI-IO call."""
    hosts = texts([*(each or None for each in trace.hosts), None])
    files, file = np.unique(trace.file_id, return_inverse=True)
    return {
        "id": np.arange(len(trace)),
        "api": named(APIS, trace.api),
        "operation": named(OPERATIONS, trace.operation),
        "file": hexadecimal(files).take(pa.array(file)),
        "rank": trace.rank,
        "node": hosts.take(pa.array(np.where(trace.host < 0, len(trace.hosts), trace.host))),
        "offset_bytes": pa.array(trace.offset, mask=trace.offset == UNKNOWN_OFFSET),
        "length_bytes": trace.length,
        "start_seconds": trace.start_seconds,
        "end_seconds": trace.end_seconds,
        **{
            name: known(number, number != NO_CALL)
            for name, number in (
                ("call", calls.call),
                ("call_number", calls.call_number),
                ("instance", calls.instance),
                ("fragment", calls.fragment),
            )
        },
    }


def server_rows(
    lustre: LustreComponents | None, trace: Operations, *, of_requests: bool
) -> Iterator[tuple[str, Columns]]:
    """Yield rows of `request_servers`, if wanted, and of `file_servers`; none without a layout."""
    sums: dict[tuple[int, int, int], int] = {}
    for on in bytes_of_requests(lustre, trace) if lustre is not None else ():
        if of_requests:
            yield "request_servers", _request_server_rows(trace, "OST", on)
        keys = trace.file_id[on.segment], trace.api[on.segment], on.ost
        order = np.lexsort(keys)
        [first] = changes(*(key[order] for key in keys)).nonzero() if len(order) else [order]
        moved = np.add.reduceat(on.bytes[order], first) if len(order) else on.bytes
        columns = (*(key[order[first]] for key in keys), moved)
        for file, api, ost, bytes_ in zip(*(each.tolist() for each in columns), strict=True):
            sums[file, api, ost] = sums.get((file, api, ost), 0) + bytes_
    yield (
        "file_servers",
        {
            "file": [f"{file:016x}" for file, _, _ in sums],
            "api": [APIS[api] for _, api, _ in sums],
            "server": [None if ost < 0 else ost for _, _, ost in sums],
            "bytes": list(sums.values()),
        },
    )


def file_ost_rows(
    lustre: LustreComponents, ids: NDArray[np.uint64], extent_bytes: NDArray[np.int64]
) -> Columns:
    """Make a row of each OST of files (record ids), with its share of the bytes of the file."""
    on = bytes_of_servers(lustre, ids, np.zeros_like(extent_bytes), extent_bytes)
    # Lustre may not tell an OST, and bytes of a file may be on a metadata server.
    whole = np.bincount(on.segment, on.bytes, len(ids))[on.segment]
    is_known = on.ost >= 0
    return {
        "file": hexadecimal(ids[on.segment[is_known]]),
        "server": on.ost[is_known],
        "share": (on.bytes / np.maximum(whole, 1))[is_known],
    }


def untraced_server_rows(
    lustre: LustreComponents, files: FilesOfRuns, of_run: slice, trace: Operations | None
) -> Columns:
    """Make rows of `file_servers` for files of a run without traced requests, by their layouts.

    The bytes that a file moved are divided as its bytes up to the highest offset lie on servers.
    """
    facts, ids = files.facts.files, files.ids[of_run]
    extent, moved = facts.extent_bytes[of_run], facts.bytes[of_run]
    counts = moved > 0
    if trace is not None:
        counts &= ~is_among(ids, np.unique(trace.file_id))
    held = bytes_of_servers(lustre, ids, np.zeros_like(extent), np.where(counts, extent, 0))
    file = held.segment
    return {
        "file": hexadecimal(ids[file]),
        "api": named(APIS, facts.api[of_run][file]),
        "server": known(held.ost, held.ost >= 0),
        "bytes": np.rint(moved[file] * (held.bytes / extent[file])).astype(np.int64),
    }


def io_node_rows(trace: Operations, io_nodes: Mapping[str, int]) -> Columns:
    """Make a row of `request_servers` for each request of a compute node whose I/O node is known.

    `io_nodes` has the number of the I/O node of each compute node.
    """
    of_hosts = np.array([*(io_nodes.get(name, -1) for name in trace.hosts), -1])
    of_request = of_hosts[trace.host]
    [request] = (of_request >= 0).nonzero()
    servers = ServerBytes(request, of_request[request], trace.length[request])
    return _request_server_rows(trace, "ION", servers)


def _request_server_rows(trace: Operations, kind: str, on: ServerBytes) -> Columns:
    # Servers see the requests of POSIX. The range of bytes of an MPI-IO request says nothing about
    # servers where a view has gaps, so one without POSIX requests below has no rows either.
    posix = trace.api[on.segment] == APIS.index("POSIX")
    request, server = on.segment[posix], on.ost[posix]
    return {
        "id": request,
        "server_kind": named((kind,), np.zeros(len(request), np.int8)),
        "server": known(server, server >= 0),
        "bytes": on.bytes[posix],
        "start_seconds": trace.start_seconds[request],
        "end_seconds": trace.end_seconds[request],
        "own_times": np.zeros(len(request), bool),
    }
