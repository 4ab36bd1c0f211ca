"""The requests of each record of a layer: their order and their sizes."""

from __future__ import annotations

import numpy as np

from ioncast.insights.facts.values import Ints, Requests, possible
from ioncast_base.kinds import SMALL_REQUEST_BYTES, Api, Operation
from summario.phases.streams import first_accesses, order_of, requests_of, row_of_counters
from summario.reading.layouts import SIZE_BINS
from summario.reading.records import Records

# Darshan puts requests of exactly 1 MiB, which are not small, into a bin below this one.
_BELOW_MIB = SIZE_BINS.index("1M_4M")


def read_requests(records: Records, api: Api, operation: Operation, processes: Ints) -> Requests:
    """Read the requests of one operation."""
    requests = possible(requests_of(records, api, operation)[0])
    consecutive, sequential = map(possible, order_of(records, api, operation, requests, processes))
    first = first_accesses(records, api, operation, requests, processes)
    is_ordered = api != "MPIIO"
    histogram = _histogram(records, api, operation)
    return Requests(
        requests=requests,
        bytes=_count(records, f"{api}_BYTES_{'READ' if operation == 'read' else 'WRITTEN'}"),
        consecutive=consecutive,
        sequential=sequential,
        first=first,
        random=np.maximum(requests - sequential - first, 0) * is_ordered,
        small=histogram[:, :_BELOW_MIB].sum(axis=1) - _of_one_mib(records, api, operation),
        histogram=histogram,
        seconds=_seconds(records, f"{api}_F_{operation.upper()}_TIME"),
        **{
            kind: _count(records, f"{api}_{prefix}_{operation.upper()}S")
            for kind, prefix in (
                ("independent", "INDEP"),
                ("collective", "COLL"),
                ("split", "SPLIT"),
                ("nonblocking", "NB"),
            )
        },
    )


def _count(records: Records, name: str) -> Ints:
    return possible(records.integer(name))


def _seconds(records: Records, name: str) -> np.ndarray:
    found = records.real(name)
    return np.where(np.isfinite(found) & (found > 0), found, 0.0)


def _histogram(records: Records, api: Api, operation: Operation) -> Ints:
    name = f"{api}_SIZE_{operation.upper()}{'_AGG' if api == 'MPIIO' else ''}_{SIZE_BINS[0]}"
    if name not in records.columns:
        return np.zeros((len(records.words), len(SIZE_BINS)), np.int64)
    return possible(row_of_counters(records, name, len(SIZE_BINS)))


def _of_one_mib(records: Records, api: Api, operation: Operation) -> Ints:
    """Count the requests of exactly 1 MiB, as far as the four most common sizes tell."""
    of_one_mib = np.zeros(len(records.words), np.int64)
    if f"{api}_ACCESS1_ACCESS" not in records.columns:
        return of_one_mib
    sizes = row_of_counters(records, f"{api}_ACCESS1_ACCESS", 4)
    [rows] = (sizes == SMALL_REQUEST_BYTES).any(axis=1).nonzero()
    if not len(rows):
        return of_one_mib
    counts = possible(row_of_counters(records, f"{api}_ACCESS1_COUNT", 4)[rows])
    both = np.where(sizes[rows] == SMALL_REQUEST_BYTES, counts, 0).sum(axis=1)
    reads, writes = (
        _histogram(records, api, name)[rows, _BELOW_MIB - 1] for name in ("read", "write")
    )
    own = reads if operation == "read" else writes
    part = np.rint(both * (own / np.maximum(reads + writes, 1))).astype(np.int64)
    of_one_mib[rows] = np.minimum(part, own)
    return of_one_mib
