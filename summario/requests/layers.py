"""The order of MPI-IO requests, by the POSIX calls below them.

MPI-IO counts no order. If each request is one POSIX call of the same process, the POSIX records
tell it. Collective calls may instead pass the data to a few processes, the aggregators, which read
or write the common range of a call in pieces (two-phase I/O, see R. Thakur, W. Gropp and E. Lusk,
"Data Sieving and Collective I/O in ROMIO", 1999).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS, ORDERS, SPATIALITIES
from summario.phases.merge import FilePhases, blocks, merge_ranks, spatialities, take_rows
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, Streams
from summario.reading.file_ids import is_among, values_of_files

UNKNOWN = -1
_CONTIGUOUS, _SEQUENTIAL, _RANDOM = range(len(ORDERS))
_ORDERS_OF_SPATIALITIES = np.array(
    [ORDERS.index(name) if name in ORDERS else UNKNOWN for name in SPATIALITIES]
)
_STRIDES = tuple(f"POSIX_STRIDE{index}_COUNT" for index in range(1, 5))


@dataclass(frozen=True)
class Layers:
    """The calls of both layers, not split at pauses, in the same rows by (file, operation).

    `has_view` tells where a file view may spread a request over the file, `has_idle` where a
    process made no POSIX call, and `strided` how many POSIX calls at least left a gap behind the
    call before.
    """

    mpiio: FilePhases
    posix: FilePhases
    streams: Streams
    has_view: NDArray[np.bool_]
    has_idle: NDArray[np.bool_]
    strided: Ints

    def __len__(self) -> int:
        return len(self.mpiio)

    def rows(self, operation: NDArray[np.int8], file_id: NDArray[np.uint64]) -> Ints:
        """Find the row of each operation and file; -1 without POSIX calls."""
        found = np.full(len(file_id), UNKNOWN)
        for index in range(len(OPERATIONS)):
            [own] = (self.mpiio.operation == index).nonzero()
            [asked] = (operation == index).nonzero()
            if not len(own) or not len(asked):
                continue
            ids = self.mpiio.file_id[own]
            place = np.minimum(np.searchsorted(ids, file_id[asked]), len(ids) - 1)
            found[asked] = np.where(ids[place] == file_id[asked], own[place], UNKNOWN)
        return found


def layers_of(files: NDArray[np.uint64], stack: Stack, streams: Streams) -> Layers | None:
    """Find the calls of both layers of some files; None if no file has POSIX calls."""
    of_files = streams.take(is_among(streams.file_id, files))
    by_api = [of_files.take(of_files.api == APIS.index(api)) for api in ("MPIIO", "POSIX")]
    if not all(map(len, by_api)):
        return None
    mpiio, posix = (merge_ranks(table, stack.processes) for table in by_api)
    # Both are sorted by operation and file, so their common rows are in the same order.
    mpiio, posix = take_rows(mpiio, _is_in(mpiio, posix)), take_rows(posix, _is_in(posix, mpiio))
    if not len(mpiio):
        return None
    ids = mpiio.file_id
    return Layers(
        mpiio=mpiio,
        posix=posix,
        streams=by_api[1],
        has_view=_counts(stack, "MPI-IO", ("MPIIO_VIEWS",), ids) != 0,
        has_idle=(posix.processes < mpiio.processes) | is_among(ids, _with_idle_rank(stack)),
        strided=_strided(stack, posix, by_api[1]),
    )


def _is_in(table: FilePhases, other: FilePhases) -> NDArray[np.bool_]:
    """Tell which rows have their operation and file in another table."""
    found = np.zeros(len(table), bool)
    for index in range(len(OPERATIONS)):
        rows = table.operation == index
        found[rows] = is_among(table.file_id[rows], other.file_id[other.operation == index])
    return found


def _counts(
    stack: Stack, module: str, names: tuple[str, ...], wanted: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Add up counters of a module for each wanted file."""
    found = np.zeros(len(wanted))
    for records in stack.records(module):
        [rows] = is_among(records.ids, wanted).nonzero()
        of_files = records.take(rows)
        counts = of_files.integers(*names).astype(np.float64).sum(axis=1)
        found += values_of_files(counts, of_files.ids, wanted, np.add, without=0)
    return found


def _with_idle_rank(stack: Stack) -> NDArray[np.uint64]:
    """List files of all ranks whose fastest rank moved no bytes."""
    found = [np.zeros(0, np.uint64)]
    for records in stack.records("POSIX"):
        idle = (records.ranks < 0) & (records.integer("POSIX_FASTEST_RANK_BYTES") == 0)
        found.append(records.ids[idle])
    return np.concatenate(found)


def _strided(stack: Stack, posix: FilePhases, streams: Streams) -> Ints:
    """Count the calls of the four most common strides, without those of the other operation."""
    counts = _counts(stack, "POSIX", _STRIDES, posix.file_id)
    for index in range(len(OPERATIONS)):
        rows = posix.operation == index
        other = streams.take(streams.operation != index)
        # The first access of a process leaves no gap behind another one.
        most = other.requests - other.consecutive - np.minimum(other.processes, other.requests)
        counts[rows] -= values_of_files(
            most.astype(np.float64), other.file_id, posix.file_id[rows], np.add, without=0
        )
    possible = (counts >= 0) & (counts <= posix.requests)
    return np.where(possible, counts, 0).astype(np.int64)


class RequestOrders(NamedTuple):
    """Orders of rows, as indices into `ORDERS` (-1: not known), and their numbers of blocks.

    A block is a row of requests that follow one another in a process; NaN if not known.
    """

    order: Ints
    blocks: Floats


def orders_of(layers: Layers, aggregators: Ints, threshold: float) -> RequestOrders:
    """Tell the order of the MPI-IO requests of each row.

    `aggregators` are the processes that made the row's POSIX calls; -1 if it is not known.
    """
    mpiio, posix = layers.mpiio, _with_fewer_firsts(layers)
    has_idle = layers.has_idle | ((aggregators >= 0) & (aggregators < mpiio.processes))
    # Without collective calls, an idle process had nothing to move.
    has_idle &= mpiio.collective > 0
    same_bytes = (posix.bytes == mpiio.bytes) & ~has_idle
    is_cut = same_bytes & (posix.requests > mpiio.requests)
    jumps = np.maximum(posix.requests - posix.consecutive - posix.unordered, 0)
    is_collective = spatialities(mpiio, threshold) == SPATIALITIES.index("collective")
    rules = [
        same_bytes & (posix.requests == mpiio.requests),
        is_cut & (jumps <= threshold * (mpiio.requests - posix.unordered)),
        (mpiio.requests <= mpiio.processes) & ~layers.has_view,
        is_collective & (posix.bytes >= mpiio.bytes) & (has_idle | ~layers.has_view),
    ]
    by_aggregators = _order_of_aggregators(layers, aggregators, threshold)
    by_posix = RequestOrders(_ORDERS_OF_SPATIALITIES[spatialities(posix, threshold)], blocks(posix))
    all_contiguous = np.full(len(layers), _CONTIGUOUS)
    found = np.select(
        rules, [by_posix.order, all_contiguous, all_contiguous, by_aggregators.order], UNKNOWN
    )
    # No benchmark makes collective requests in random order.
    known = ~mpiio.partial & ~posix.partial & ~(is_collective & (found == _RANDOM))
    cut = np.select(
        rules, [by_posix.blocks, by_posix.blocks, 1.0 * mpiio.requests, by_aggregators.blocks]
    )
    order = np.where(known, found, UNKNOWN)
    return RequestOrders(order, np.where(order == UNKNOWN, np.nan, cut))


def _with_fewer_firsts(layers: Layers) -> FilePhases:
    """Leave out opens for MPI-IO's own use from the first accesses of the POSIX calls.

    MPI-IO also opens a file to create it and to read its size. A call that is consecutive or
    leaves a gap is no first access, so at most the others are.
    """
    posix = layers.posix
    most = np.maximum(posix.requests - posix.consecutive - layers.strided, 0)
    return replace(posix, unordered=np.minimum(posix.unordered, most))


def _order_of_aggregators(layers: Layers, aggregators: Ints, threshold: float) -> RequestOrders:
    """Tell the order of collective requests by how often the aggregators go back in the file.

    If each process has a block, each collective call begins before the end of the call before, so
    each aggregator goes back. If the processes interleave, each call begins where the call before
    ended, so no aggregator does. In between, the aggregators go back in all calls of a block but
    the first one.
    """
    mpiio, posix = layers.mpiio, layers.posix
    calls_after_first = mpiio.requests / np.maximum(mpiio.processes, 1) - 1
    # The call at the beginning of the file does not follow another one.
    back = np.maximum(posix.requests - posix.sequential - 1, 0)
    most = np.where(aggregators > 0, aggregators, mpiio.processes)
    enough = (1 - threshold) * calls_after_first
    rules = [calls_after_first < 1, back < enough, back >= most * enough]
    order = np.select(rules, [UNKNOWN, _SEQUENTIAL, _CONTIGUOUS], UNKNOWN)
    begun = calls_after_first - back / np.maximum(aggregators, 1)
    some = np.where(aggregators > 0, mpiio.processes * (1 + np.maximum(begun, 0)), np.nan)
    return RequestOrders(order, np.where(order == _SEQUENTIAL, some, np.nan))
