"""Step 2 of the extraction (Inria RR-9366, Appendix A): a row per (file, api, operation)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, SPATIALITIES
from summario.phases.streams import MOST, Floats, Indices, Ints, Streams, changes


@dataclass(frozen=True)
class FilePhases:
    """A table with a row for each (file, api, operation), or for each piece between two pauses.

    Times are in seconds, those without another meaning since the run's start.

    Attributes
    ----------
    shared : ndarray of bool
        Whether more than one process used the file.
    processes, bytes, requests : ndarray of int64
        Sums over ranks. There are no requests if the log does not count those of all its bytes.
    counted, unordered : ndarray of int64
        The number of requests that the order counters describe, and how many of them can be
        neither consecutive nor sequential: the first request of each process in each piece.
    at_beginning : ndarray of int64
        How many of the unordered requests may be at the beginning of the file, at most. Darshan
        counts the others as sequential.
    consecutive, sequential, collective : ndarray of int64
        Order counters. A piece has the counters of its whole record.
    partial, shown : ndarray of bool
        Whether records of the row may be missing in the log; whether it shows all the row's pauses.
    start, end, time, metadata, calls : ndarray of float64
        Earliest start, latest end, and the longest I/O time, metadata time, and time in calls (see
        `summario.phases.opens.call_times`) of a process.
    first, moved_from, moved_until, last : ndarray of float64
        First open or access, first and last access, and last access or close.
    member_row, member_log, member_rank : ndarray of int64
        Each rank of each row, with the index of its log; -1 stands for all ranks of the log.
    part_row, part_requests, part_bytes, part_size : ndarray of int64 (part_size: float64)
        The requests of each row by size. The bytes of a row's parts add up to the row's bytes.
    """

    api: Indices
    operation: Indices
    file_id: NDArray[np.uint64]
    shared: NDArray[np.bool_]
    processes: Ints
    bytes: Ints
    requests: Ints
    counted: Ints
    unordered: Ints
    at_beginning: Ints
    consecutive: Ints
    sequential: Ints
    collective: Ints
    start: Floats
    end: Floats
    time: Floats
    partial: NDArray[np.bool_]
    metadata: Floats
    first: Floats
    moved_from: Floats
    moved_until: Floats
    last: Floats
    calls: Floats
    shown: NDArray[np.bool_]
    member_row: Ints
    member_log: Ints
    member_rank: Ints
    part_row: Ints
    part_size: Floats
    part_requests: Ints
    part_bytes: Ints

    def __len__(self) -> int:
        return len(self.bytes)


def merge_ranks(streams: Streams, nprocs: Ints, *, runs_apart: bool = False) -> FilePhases:
    """Step 2: merge streams to one row per (file, api, operation); `nprocs` are for each log.

    If each log is a run, `runs_apart` sorts rows, members and parts by log.
    """
    has_several_logs = len(nprocs) > 1
    by = (streams.rank, *((streams.log,) if has_several_logs else ()))
    by_run = (streams.log,) if runs_apart else ()
    order = np.lexsort((*by, streams.file_id, streams.operation, streams.api, *by_run))
    streams = streams.take(order)
    new = changes(streams.api, streams.operation, streams.file_id)
    [first] = new.nonzero()
    row = new.cumsum() - 1
    members = np.bincount(row)
    new_in_log = new | changes(streams.log) if has_several_logs else new
    [first_in_log] = new_in_log.nonzero()
    processes_of_log = np.minimum(
        np.add.reduceat(streams.processes, first_in_log), nprocs[streams.log[first_in_log]]
    )
    processes = np.add.reduceat(processes_of_log, first_in_log.searchsorted(first))
    uncounted = (streams.requests == 0) & (streams.bytes > 0)
    is_counted = ~np.logical_or.reduceat(uncounted, first)
    requests = np.add.reduceat(streams.requests, first) * is_counted
    parts = _parts(streams, row, is_counted)
    if runs_apart:
        by_row = np.argsort(parts[0], kind="stable")
        parts = (parts[0][by_row], parts[1][by_row], parts[2][by_row], parts[3][by_row])
    part_row, part_size, part_requests, part_bytes = parts
    start, end = (
        np.minimum.reduceat(streams.start, first),
        np.maximum.reduceat(streams.end, first),
    )
    # A record that Darshan reduced over all ranks of a log comes first; it stands for all of them.
    member = (streams.rank < 0) | (streams.rank[first_in_log][new_in_log.cumsum() - 1] >= 0)
    return FilePhases(
        api=streams.api[first],
        operation=streams.operation[first],
        file_id=streams.file_id[first],
        shared=(members > 1) | (streams.rank[first] < 0),
        processes=processes,
        bytes=np.add.reduceat(streams.bytes, first),
        requests=requests,
        counted=requests,
        unordered=np.add.reduceat(streams.unordered, first),
        at_beginning=_at_beginning(streams, first),
        consecutive=np.add.reduceat(streams.consecutive, first),
        sequential=np.add.reduceat(streams.sequential, first),
        collective=np.add.reduceat(streams.collective, first),
        start=start,
        end=end,
        time=np.maximum.reduceat(streams.time, first),
        partial=np.logical_or.reduceat(streams.partial, first),
        metadata=np.maximum.reduceat(streams.metadata, first),
        first=np.minimum.reduceat(streams.start - streams.before, first),
        moved_from=start,
        moved_until=end,
        last=np.maximum.reduceat(streams.end + streams.after, first),
        calls=np.maximum.reduceat(streams.calls, first),
        shown=np.zeros(len(first), bool),
        member_row=row[member],
        member_log=streams.log[member],
        member_rank=streams.rank[member],
        part_row=part_row,
        part_size=part_size,
        part_requests=part_requests,
        part_bytes=part_bytes,
    )


def _at_beginning(streams: Streams, first: Ints) -> Ints:
    """Count the requests at the beginning of each row's file, at most.

    If all requests have one size, only repeated ones are at the same place.
    """
    size = streams.sizes[:, 0]
    alike = (streams.counts[:, 0] == streams.requests) & (size * streams.requests == streams.bytes)
    same = np.logical_and.reduceat(alike & (streams.extent > 0), first)
    same &= np.minimum.reduceat(size, first) == np.maximum.reduceat(size, first)
    moved = np.add.reduceat(streams.bytes, first)
    extent = np.maximum(np.maximum.reduceat(streams.extent, first), 1)
    return np.where(same, -(-moved // extent), MOST)


def spatialities(file_phases: FilePhases, threshold: float) -> Ints:
    """Classify rows by the share of requests in order, as indices into `SPATIALITIES`."""
    enough = (1 - threshold) * np.maximum(file_phases.counted - file_phases.unordered, 0)
    # Darshan counts a first access as sequential, unless it is at the beginning of the file.
    ahead = np.maximum(file_phases.unordered - file_phases.at_beginning, 0)
    forward = file_phases.sequential - ahead >= enough
    in_order = np.where(forward, SPATIALITIES.index("sequential"), SPATIALITIES.index("random"))
    posix = np.where(
        forward & (file_phases.consecutive >= enough), SPATIALITIES.index("contiguous"), in_order
    )
    mpiio = np.where(
        file_phases.collective >= (1 - threshold) * file_phases.counted,
        SPATIALITIES.index("collective"),
        SPATIALITIES.index("unknown"),
    )
    return np.where(file_phases.api == APIS.index("MPIIO"), mpiio, posix)


def blocks(file_phases: FilePhases) -> Floats:
    """Count the blocks of requests that follow one another in each row.

    An open may go on where the file was left, so only one first access of each process begins a
    block. A piece has its share of the blocks of its record.
    """
    rest = file_phases.counted - file_phases.consecutive - file_phases.unordered
    all_ = np.maximum(rest, 0) + np.minimum(file_phases.processes, file_phases.counted)
    return at_least_one_block(file_phases, all_ / np.maximum(file_phases.counted, 1))


def at_least_one_block(file_phases: FilePhases, blocks_of_request: Floats) -> Floats:
    """Count the blocks of each row: at least one of each process, at most one of each request."""
    requests = file_phases.requests
    fewest = np.minimum(file_phases.processes, requests)
    # NaN stays, because it is not known.
    found: Floats = np.clip(requests * blocks_of_request, fewest, requests)
    return found


def take_rows(table: FilePhases, rows: NDArray[np.bool_]) -> FilePhases:
    """Select rows by a mask, with their members and parts."""
    if rows.all():
        return table
    renumbered = np.cumsum(rows) - 1
    members, parts = rows[table.member_row], rows[table.part_row]
    values = {}
    for field in fields(table):
        kept = {"member": members, "part": parts}.get(field.name.split("_")[0], rows)
        values[field.name] = getattr(table, field.name)[kept]
    values["member_row"] = renumbered[values["member_row"]]
    values["part_row"] = renumbered[values["part_row"]]
    return FilePhases(**values)


def rows_between(table: FilePhases, first: int, end: int) -> FilePhases:
    """View some rows of a table whose members and parts are sorted by row."""
    if (first, end) == (0, len(table)):
        return table
    members, parts = (
        slice(*np.searchsorted(rows, (first, end))) for rows in (table.member_row, table.part_row)
    )
    values = {}
    for field in fields(table):
        kept = {"member": members, "part": parts}.get(field.name.split("_")[0], slice(first, end))
        values[field.name] = getattr(table, field.name)[kept]
    values["member_row"] = values["member_row"] - first
    values["part_row"] = values["part_row"] - first
    return FilePhases(**values)


def stack_rows(tables: list[FilePhases]) -> FilePhases:
    """Stack tables."""
    offsets = np.cumsum([0, *(len(table) for table in tables[:-1])])
    values = {}
    for field in fields(FilePhases):
        arrays = [getattr(table, field.name) for table in tables]
        if field.name in ("member_row", "part_row"):
            arrays = [array + offset for array, offset in zip(arrays, offsets, strict=True)]
        values[field.name] = np.concatenate(arrays)
    return FilePhases(**values)


def _parts(
    streams: Streams, row: Ints, is_counted: NDArray[np.bool_]
) -> tuple[Ints, Floats, Ints, Ints]:
    """Split the requests of each stream by size; rows without counted requests have no parts.

    Darshan counts the four most common sizes. All other requests become one part of their mean
    size. If counters contradict each other, all requests become one part.
    """
    stream, slot = np.nonzero(streams.counts)
    counts, sizes = streams.counts[stream, slot], streams.sizes[stream, slot]
    # Darshan 3.2.0 wrote impossible sizes.
    likely = (sizes > 0) & (sizes.astype(np.float64) * counts <= streams.bytes[stream])
    stream, counts, sizes = stream[likely], counts[likely], sizes[likely]
    rest_requests, rest_bytes = streams.requests.copy(), streams.bytes.copy()
    np.subtract.at(rest_requests, stream, counts)
    np.subtract.at(rest_bytes, stream, counts * sizes)
    contradictory = (
        (rest_requests < 0) | (rest_bytes < 0) | ((rest_requests == 0) & (rest_bytes > 0))
    )
    rest_requests = np.where(contradictory, streams.requests, rest_requests)
    rest_bytes = np.where(contradictory, streams.bytes, rest_bytes)
    rest_size = rest_bytes / np.maximum(rest_requests, 1)

    known, rest = ~contradictory[stream] & is_counted[row[stream]], rest_bytes > 0
    rest &= is_counted[row]
    counts, sizes = counts[known], sizes[known]
    return (
        np.concatenate([row[stream[known]], row[rest]]),
        np.concatenate([sizes.astype(np.float64), rest_size[rest]]),
        np.concatenate([counts, rest_requests[rest]]),
        np.concatenate([counts * sizes, rest_bytes[rest]]),
    )
