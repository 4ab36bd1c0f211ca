"""The order, sizes and shares of requests in the rows of files, as a DXT trace tells them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.wording import counted
from summario.phases.merge import FilePhases
from summario.phases.pauses import traced_requests
from summario.phases.streams import Ints, changes
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.runs.logs_of_run import Run

# A row keeps so many request sizes apart; the other requests become one part of their mean size.
_MOST_SIZES = 16


class Largest(NamedTuple):
    """The bytes of a phase's process and compute node that moves most; None if no trace tells."""

    process_bytes: int | None = None
    node_bytes: int | None = None
    nodes: int | None = None


NOT_TOLD = Largest()


@dataclass(frozen=True)
class Loads:
    """A table of the bytes of each process in each row, with the number of its compute node.

    `is_whole` tells for each row whether the trace has all of its requests.
    """

    row: Ints
    rank: Ints
    bytes: Ints
    host: NDArray[np.int32]
    has_hosts: bool
    is_whole: NDArray[np.bool_]

    def largest(self, group: Ints) -> list[Largest]:
        """Find the largest shares of each group; `group` has the group of each row."""
        groups = int(group.max()) + 1
        is_whole = np.ones(groups, bool)
        is_whole[group[~self.is_whole]] = False
        _, processes = self._most(group, self.rank, groups)
        nodes, on_nodes = self._most(group, self.host, groups)
        return [
            Largest(process, *((node, number) if self.has_hosts else ())) if told else NOT_TOLD
            for told, process, node, number in zip(
                (is_whole & (processes > 0)).tolist(),
                processes.tolist(),
                on_nodes.tolist(),
                nodes.tolist(),
                strict=True,
            )
        ]

    def _most(
        self, group: Ints, owner: NDArray[np.signedinteger], groups: int
    ) -> tuple[Ints, Ints]:
        """Count the owners of each group's bytes, and find the most bytes of one owner."""
        number, most = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        if not len(self.row):
            return number, most
        of_group = group[self.row]
        order = np.lexsort((owner, of_group))
        [first] = changes(of_group[order], owner[order]).nonzero()
        moved = np.add.reduceat(self.bytes[order], first)
        np.add.at(number, of_group[order][first], moved > 0)
        np.maximum.at(most, of_group[order][first], moved)
        return number, most


@dataclass(frozen=True)
class TracedPhases:
    """The rows of files as a trace tells them, the loads of processes, and warnings."""

    file_phases: FilePhases
    loads: Loads
    warnings: tuple[str, ...] = ()


def told_by_trace(file_phases: FilePhases, run: Run) -> TracedPhases:
    """Replace the order and the request sizes of rows by those of their traced requests.

    A row whose requests were not all traced keeps its counters, and a warning counts such files.
    """
    traced = traced_requests(run, np.unique(file_phases.file_id))
    row = _rows_of(file_phases, traced)
    traced, row = traced.take(row >= 0), row[row >= 0]
    # A process makes its requests in the order of their starts; the log keeps equal ones in order.
    order = np.lexsort((traced.start_seconds, traced.rank, row))
    traced, row = traced.take(order), row[order]
    is_whole = _are_whole(file_phases, traced, row)
    kept = is_whole[row]
    traced, row = traced.take(kept), row[kept]
    loads = _loads(traced, row, is_whole)
    rest = np.unique(file_phases.file_id[~is_whole])
    lacking = (
        (f"{counted(len(rest), 'file')} without a whole DXT trace: the counters tell their I/O",)
        if len(rest)
        else ()
    )
    rows = _with_sizes(_with_order(file_phases, traced, row, loads), traced, row, is_whole)
    return TracedPhases(rows, loads, (*traced.warnings, *lacking))


def _rows_of(file_phases: FilePhases, traced: Operations) -> Ints:
    """Find the row of each request: the last one of its file that has begun; -1 without any."""
    files = np.unique(file_phases.file_id)

    def kinds(table: FilePhases | Operations) -> Ints:
        file = np.searchsorted(files, table.file_id)
        kind: Ints = (file * len(APIS) + table.api) * len(OPERATIONS) + table.operation
        return kind

    of_rows, of_requests = kinds(file_phases), kinds(traced)
    by_start = np.lexsort((file_phases.start, of_rows))
    ordered = of_rows[by_start]
    # Sort rows and requests together. Then the rows before a request are those that have begun.
    together = np.lexsort(
        (
            np.repeat([0, 1], [len(ordered), len(traced)]),
            np.concatenate([file_phases.start[by_start], traced.start_seconds]),
            np.concatenate([ordered, of_requests]),
        )
    )
    begun = np.cumsum(together < len(ordered)) - 1
    is_request = together >= len(ordered)
    place = np.empty(len(traced), np.int64)
    place[together[is_request] - len(ordered)] = begun[is_request]
    # The clock of a counter may be later than that of the first request.
    place = np.maximum(place, np.searchsorted(ordered, of_requests))
    last = np.minimum(place, max(len(ordered) - 1, 0))
    return np.where(ordered[last] == of_requests, by_start[last], -1)


def _are_whole(file_phases: FilePhases, traced: Operations, row: Ints) -> NDArray[np.bool_]:
    """Tell which rows have all their requests and bytes in the trace."""
    number = np.bincount(row, minlength=len(file_phases))
    moved = np.zeros(len(file_phases), np.int64)
    if len(row):
        [first] = changes(row).nonzero()
        moved[row[first]] = np.add.reduceat(traced.length, first)
    whole: NDArray[np.bool_] = (number == file_phases.requests) & (moved == file_phases.bytes)
    return whole


def _loads(traced: Operations, row: Ints, is_whole: NDArray[np.bool_]) -> Loads:
    """Add up the bytes of each process in each row; requests are sorted by both."""
    [first] = changes(row, traced.rank).nonzero() if len(row) else [np.zeros(0, np.int64)]
    return Loads(
        row=row[first],
        rank=traced.rank[first],
        bytes=np.add.reduceat(traced.length, first) if len(first) else first,
        host=traced.host[first],
        has_hosts=all(traced.hosts),
        is_whole=is_whole,
    )


def _with_order(file_phases: FilePhases, traced: Operations, row: Ints, loads: Loads) -> FilePhases:
    """Count again the requests of whole rows that are in order, from offsets.

    A trace has no opens. So as many requests as before can be first accesses.
    """
    if not len(row):
        return file_phases
    gap = traced.offset[1:] - traced.offset[:-1] - traced.length[:-1]
    follows = ~changes(row, traced.rank)[1:]
    unknown = np.bincount(row[traced.offset == UNKNOWN_OFFSET], minlength=len(file_phases)) > 0
    told = loads.is_whole & ~unknown
    rows = len(file_phases)
    consecutive = np.bincount(row[1:][follows & (gap == 0)], minlength=rows)
    sequential = np.bincount(row[1:][follows & (gap >= 0)], minlength=rows)
    firsts = np.bincount(loads.row, minlength=rows)
    unordered = np.minimum(np.maximum(file_phases.unordered, firsts), file_phases.requests)
    return replace(
        file_phases,
        counted=np.where(told, file_phases.requests, file_phases.counted),
        unordered=np.where(told, unordered, file_phases.unordered),
        # These counts of sequential requests contain no first accesses.
        at_beginning=np.where(told, unordered, file_phases.at_beginning),
        consecutive=np.where(told, consecutive, file_phases.consecutive),
        sequential=np.where(told, sequential, file_phases.sequential),
    )


def _with_sizes(
    file_phases: FilePhases, traced: Operations, row: Ints, is_whole: NDArray[np.bool_]
) -> FilePhases:
    """Replace the parts of whole rows by those of all their request sizes."""
    if not len(row):
        return file_phases
    by_size = np.lexsort((traced.length, row))
    row, length = row[by_size], traced.length[by_size]
    [first] = changes(row, length).nonzero()
    row, requests = row[first], np.diff(first, append=len(length))
    moved = length[first] * requests
    row, requests, moved = (column[moved > 0] for column in (row, requests, moved))
    row, requests, moved = _most_common(row, requests, moved)
    others = ~is_whole[file_phases.part_row]
    size = moved / requests
    return replace(
        file_phases,
        part_row=np.concatenate([file_phases.part_row[others], row]),
        part_size=np.concatenate([file_phases.part_size[others], size]),
        part_requests=np.concatenate([file_phases.part_requests[others], requests]),
        part_bytes=np.concatenate([file_phases.part_bytes[others], moved]),
    )


def _most_common(row: Ints, requests: Ints, moved: Ints) -> tuple[Ints, Ints, Ints]:
    """Keep the sizes of most bytes in each row; the requests of all others become one part."""
    if not len(row):
        return row, requests, moved
    order = np.lexsort((-moved, row))
    row, requests, moved = row[order], requests[order], moved[order]
    [first] = changes(row).nonzero()
    place = np.arange(len(row)) - np.repeat(first, np.diff(first, append=len(row)))
    part = np.minimum(place, _MOST_SIZES)
    [first] = changes(row, part).nonzero()
    return row[first], np.add.reduceat(requests, first), np.add.reduceat(moved, first)
