"""Step 1 of the extraction (Inria RR-9366, Appendix A): each (file, api, operation, rank)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.limits import MOST_BYTES
from summario.phases.metadata import metadata_times, share_of_operation
from summario.phases.opens import call_times, opens_and_closes
from summario.reading.layouts import SIZE_BINS
from summario.reading.records import Records

MODULE_OF_API = {"POSIX": "POSIX", "MPIIO": "MPI-IO", "STDIO": "STDIO"}

Ints = NDArray[np.int64]
# Indices into `APIS` and `OPERATIONS`. With 64 bits, 64,000 rows take 4 ms longer.
Indices = NDArray[np.int8]
Floats = NDArray[np.float64]

# No run has more requests or bytes.
MOST = MOST_BYTES

# Upper edges, inclusive, of Darshan's access size histogram (DARSHAN_BUCKET_INC).
_SIZE_BIN_EDGES = np.array(
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30]
)


@dataclass(frozen=True)
class Streams:
    """A table with a row for each (file, api, operation, rank) with at least one request.

    Attributes
    ----------
    rank, processes : ndarray of int64
        The rank in its log and 1, or -1 and all ranks if Darshan reduced their records to one.
    bytes, requests, consecutive, sequential, collective : ndarray of int64
        Counters of the operation.
    unordered : ndarray of int64
        The requests that can be neither consecutive nor sequential, see `first_accesses`.
    extent : ndarray of int64
        The highest offset plus 1; 0 if the log does not tell.
    start, end, time, metadata : ndarray of float64
        First and last moment in seconds since the run's start; mean I/O time and mean metadata
        time of a process in seconds (see `metadata_times`).
    partial : ndarray of bool
        Whether records that belong to the row may be missing in the log.
    before, after, calls : ndarray of float64
        Seconds from the open to the first access and from the last access to the close, and
        seconds in calls (see `summario.phases.opens`).
    sizes, counts : ndarray of int64, shape (rows, 4)
        The most common request sizes in bytes, with this operation's number of requests.
    """

    api: Indices
    operation: Indices
    file_id: NDArray[np.uint64]
    log: Ints
    rank: Ints
    processes: Ints
    bytes: Ints
    requests: Ints
    consecutive: Ints
    sequential: Ints
    collective: Ints
    unordered: Ints
    extent: Ints
    start: Floats
    end: Floats
    time: Floats
    partial: NDArray[np.bool_]
    metadata: Floats
    before: Floats
    after: Floats
    calls: Floats
    sizes: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.bytes)

    def take(self, rows: NDArray[np.bool_] | Ints) -> Streams:
        """Select rows by mask or index; a mask that selects all rows copies nothing."""
        if rows.dtype == bool:
            if rows.all():
                return self
            [rows] = rows.nonzero()
        return Streams(**{name: getattr(self, name).take(rows, axis=0) for name in _COLUMNS})

    def between(self, first: int, end: int) -> Streams:
        """View some rows."""
        if (first, end) == (0, len(self)):
            return self
        return Streams(**{name: getattr(self, name)[first:end] for name in _COLUMNS})


_COLUMNS = tuple(field.name for field in fields(Streams))


def changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows of sorted columns differ from the row before; the first one does."""
    new = np.ones(len(columns[0]), bool)
    rest = np.not_equal(columns[0][1:], columns[0][:-1], out=new[1:])
    for column in columns[1:]:
        rest |= column[1:] != column[:-1]
    return new


def in_run(streams: Streams, log: int, delay_seconds: float) -> Streams:
    """Give the streams of a log their place and time in a run of several logs."""
    return replace(
        streams,
        log=np.full(len(streams), log),
        start=streams.start + delay_seconds,
        end=streams.end + delay_seconds,
    )


def concatenate(tables: list[Streams]) -> Streams:
    """Stack at least one table of streams."""
    if len(tables) == 1:
        return tables[0]
    return Streams(
        **{name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS}
    )


def read_streams(records: Mapping[str, Records]) -> Streams | None:
    """Step 1: read a row for each (file, api, operation, rank); None if nothing was moved.

    `records` are by module.
    """
    tables = [
        streams_of(
            records[module],
            api,
            operation,
            below=records.get("POSIX") if api == "MPIIO" else None,
        )
        for api, module in MODULE_OF_API.items()
        if module in records
        for operation in OPERATIONS
    ]
    used = [table for table in tables if table is not None]
    return concatenate(used) if used else None


def streams_of(
    records: Records, api: str, operation: str, below: Records | None = None
) -> Streams | None:
    """Read the rows of one module and operation, also impossible numbers; None without requests."""
    requests, collective = requests_of(records, api, operation)
    moved = records.integer(f"{api}_BYTES_{'READ' if operation == 'read' else 'WRITTEN'}")
    used = (requests != 0) | (moved != 0)
    if not used.any():
        return None
    if not used.all():
        records = records.take(used)
        requests, collective, moved = requests[used], collective[used], moved[used]
    processes = records.processes
    start = records.real(f"{api}_F_{operation.upper()}_START_TIMESTAMP")
    end = records.real(f"{api}_F_{operation.upper()}_END_TIMESTAMP")
    consecutive, sequential = order_of(records, api, operation, requests, processes)
    sizes, counts = _access_sizes(records, api, operation)
    before, after = opens_and_closes(records, api, operation, below)
    time = records.real(f"{api}_F_{operation.upper()}_TIME") / processes
    share = share_of_operation(records, api, operation)
    metadata = metadata_times(records, api, share, below)
    return Streams(
        api=np.full(len(requests), APIS.index(api), np.int8),
        operation=np.full(len(requests), OPERATIONS.index(operation), np.int8),
        file_id=records.ids,
        log=np.full(len(requests), records.log),
        rank=records.ranks,
        processes=processes,
        bytes=moved,
        requests=requests,
        consecutive=consecutive,
        sequential=sequential,
        collective=collective,
        unordered=first_accesses(records, api, operation, requests, processes),
        extent=_extent(records, api, operation),
        start=start,
        end=end,
        time=time,
        partial=np.full(len(requests), records.partial),
        metadata=metadata,
        before=before,
        after=after,
        calls=call_times(records, api, share, time, metadata),
        sizes=sizes,
        counts=counts,
    )


def _extent(records: Records, api: str, operation: str) -> Ints:
    name = f"{api}_MAX_BYTE_{'READ' if operation == 'read' else 'WRITTEN'}"
    return np.clip(records.integer(name), -1, MOST) + (name in records.columns)


def requests_of(records: Records, api: str, operation: str) -> tuple[Ints, Ints]:
    """Count all requests of an operation, and the collective requests among them."""
    plural = f"{operation.upper()}S"
    if api != "MPIIO":
        # Version 1 of the POSIX module counts stdio calls separately, but adds their bytes.
        requests = records.integer(f"{api}_{plural}") + records.integer(f"{api}_F{plural}")
        return requests, np.zeros_like(requests)
    collective = records.integer(f"MPIIO_COLL_{plural}") + records.integer(f"MPIIO_SPLIT_{plural}")
    independent = records.integer(f"MPIIO_INDEP_{plural}") + records.integer(f"MPIIO_NB_{plural}")
    return collective + independent, collective


def first_accesses(
    records: Records, api: str, operation: str, requests: Ints, processes: Ints
) -> Ints:
    """Count the requests of each record that can be neither consecutive nor sequential, at most.

    Darshan forgets where the last request ended when a file is opened or closed, so the first
    request after each open is one of them. Only POSIX counts opens that way.
    """
    if api == "POSIX":
        other = requests_of(records, api, "write" if operation == "read" else "read")[0]
        opens = opens_of(records, api)
        opens = opens - (other > 0) * _opens_of_the_other(records, opens, processes)
    else:
        opens = np.zeros_like(requests)
    return np.minimum(requests, np.maximum(processes, opens))


def _opens_of_the_other(records: Records, opens: Ints, processes: Ints) -> Ints:
    """Count the opens that are only for the other operation of a POSIX record, at least.

    If no open is used for reads and for writes, the operation changes at opens only, so it changes
    at most once for each open but the first one of a process.
    """
    changed = np.clip(records.integer("POSIX_RW_SWITCHES"), 0, MOST)
    by_all = changed >= processes
    others: Ints = np.where(by_all, changed + processes, changed + 1) // 2
    return np.where(changed <= opens - processes, others, 0)


def opens_of(records: Records, api: str) -> Ints:
    """Count the opens of each record."""
    if api == "MPIIO":
        return records.integer("MPIIO_INDEP_OPENS") + records.integer("MPIIO_COLL_OPENS")
    opens = records.integer(f"{api}_OPENS")
    for name in ("POSIX_FILENOS", "POSIX_DUPS") if api == "POSIX" else ():
        # Darshan counts these as opens too, although they begin nothing anew.
        opens = opens - np.maximum(records.integer(name), 0)
    return opens


def order_of(
    records: Records, api: str, operation: str, requests: Ints, processes: Ints
) -> tuple[Ints, Ints]:
    """Count consecutive and sequential requests of an operation."""
    if api == "POSIX":
        plural = f"{operation.upper()}S"
        return (
            records.integer(f"POSIX_CONSEC_{plural}"),
            records.integer(f"POSIX_SEQ_{plural}"),
        )
    if api == "STDIO":
        # The position of a stream advances with each request, so only a seek breaks the order.
        steady = np.maximum(requests - processes - records.integer("STDIO_SEEKS"), 0)
        return steady, steady
    nothing = np.zeros_like(requests)
    return nothing, nothing


def _access_sizes(records: Records, api: str, operation: str) -> tuple[Ints, Ints]:
    """Read the four most common request sizes, with this operation's share of their counts.

    Darshan counts reads and writes of a size together, but has a histogram for each operation. So
    the count of a size is shared out in proportion to the two histograms' bins for that size.
    """
    shape = (len(records.words), 4)
    if api == "STDIO":
        return np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    sizes = row_of_counters(records, f"{api}_ACCESS1_ACCESS", 4)
    counts = row_of_counters(records, f"{api}_ACCESS1_COUNT", 4)
    row, slot = np.nonzero(counts > 0)
    bins = _SIZE_BIN_EDGES.searchsorted(sizes[row, slot])
    infix = "_AGG" if api == "MPIIO" else ""
    own, other = (
        row_of_counters(records, f"{api}_SIZE_{name}{infix}_{SIZE_BINS[0]}", len(SIZE_BINS))[
            row, bins
        ]
        for name in (("READ", "WRITE") if operation == "read" else ("WRITE", "READ"))
    )
    share = (own / np.maximum(own + other, 1)).clip(0, 1)
    own_counts = np.zeros(counts.shape, np.int64)
    own_counts[row, slot] = np.rint(np.minimum(counts[row, slot], MOST) * share)
    return sizes, own_counts


def row_of_counters(records: Records, first: str, number: int) -> Ints:
    """View counters that follow one another in a record, shape (records, number)."""
    column = records.columns[first]
    return records.words[:, column : column + number]
