"""Files with collective calls, and whether these calls ran as independent ones."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, Layer
from ioncast_base.kinds import APIS, OPERATIONS, Operation
from summario.phases.streams import changes
from summario.reading.operations import Operations

# Standard deviations of the bytes of processes that differ by less than this share of the mean are
# alike: HDF5 and PnetCDF add a few bytes of their own.
_SAME_DEVIATION = 0.01
_MPIIO, _POSIX = APIS.index("MPIIO"), APIS.index("POSIX")


@dataclass(frozen=True)
class Collectives:
    """A table with a row for each file and operation with collective calls of MPI-IO.

    `are_most` tells whether more than half of the file's MPI-IO calls are collective, `ran_alone`
    whether they ran as independent ones (see `collectives_of`). `posix_bytes` is 0 without records.
    """

    file: Ints
    operation: Ints
    calls: Ints
    are_most: Bools
    posix_bytes: Ints
    ran_alone: Bools

    def __len__(self) -> int:
        return len(self.file)

    def take(self, rows: Bools) -> Collectives:
        """Select rows by a mask."""
        columns = {field.name: getattr(self, field.name)[rows] for field in fields(self)}
        return Collectives(**columns)

    @property
    def aggregated(self) -> Collectives:
        """The rows whose POSIX requests mainly come from aggregators."""
        return self.take(self.are_most & ~self.ran_alone)


def collectives_of(facts: Facts, alike_share: float = 0.9) -> Collectives:
    """List the files with collective calls, and tell which of these ran as independent ones.

    Collective calls may pass the data to a few processes, the aggregators, which move them with
    fewer and larger requests. If MPI-IO carries the calls out as independent ones instead, the
    layers look alike: each process that called makes the POSIX requests of its own calls.

    With a whole trace of both layers, a request of MPI-IO and one of POSIX are a pair if they have
    the same process, file, operation and length. Requests without bytes do not count, and offsets
    neither, because a file view hides them. Each process that called must have POSIX requests, and
    at least two must have called. Without a trace the counters decide: the pairs are those of the
    two histograms of sizes, both layers moved the same bytes, and these vary alike by process.

    The calls ran as independent ones if at most 1 - `alike_share` of their number are requests
    without a pair, in the layer with more requests.
    """
    nothing = np.zeros(0, np.int64)
    found = [Collectives(nothing, nothing, nothing, nothing > 0, nothing, nothing > 0)]
    layer = facts.layers.get("MPIIO")
    if layer is not None:
        found += [_collectives(facts, layer, operation, alike_share) for operation in OPERATIONS]
    columns = [field.name for field in fields(Collectives)]
    return Collectives(
        **{name: np.concatenate([getattr(each, name) for each in found]) for name in columns}
    )


def _collectives(
    facts: Facts, mpiio: Layer, operation: Operation, alike_share: float
) -> Collectives:
    own = mpiio.of(operation)
    calls = mpiio.of_files(own.collective + own.split)
    rows = np.flatnonzero(calls > 0)
    file, calls = mpiio.used_files[rows], calls[rows]
    requests = mpiio.of_files(own.requests)[rows]
    above = _Side.of(mpiio, operation, file)
    below = _Side.of(facts.layers.get("POSIX"), operation, file)
    by_trace, is_traced = _unpaired_in_trace(facts, operation, above, below)
    unpaired = np.where(is_traced, by_trace, _unpaired_by_counters(above, below, alike_share))
    return Collectives(
        file=file,
        operation=np.full(len(file), OPERATIONS.index(operation)),
        calls=calls,
        are_most=2 * calls > requests,
        posix_bytes=below.bytes,
        ran_alone=unpaired <= calls - alike_share * calls,
    )


@dataclass(frozen=True)
class _Side:
    """One layer's view of some files in one operation; zeros for a file without records.

    `deviation_bytes` is the standard deviation of the bytes of the processes; NaN if not known.
    """

    file: Ints
    processes: Ints
    requests: Ints
    bytes: Ints
    histogram: Ints
    deviation_bytes: Floats

    @classmethod
    def of(cls, layer: Layer | None, operation: Operation, file: Ints) -> _Side:
        """Select the counters of some files, ascending."""
        if layer is None or not len(layer):
            nothing = np.zeros(len(file), np.int64)
            histogram = np.zeros((len(file), 1), np.int64)
            return cls(file, nothing, nothing, nothing, histogram, np.full(len(file), np.nan))
        used = layer.used_files
        place = np.minimum(np.searchsorted(used, file), len(used) - 1)
        has_records = used[place] == file
        requests = layer.of(operation)
        busy = np.where(requests.requests > 0, layer.processes, 0)
        return cls(
            file=file,
            processes=layer.of_files(busy)[place] * has_records,
            requests=layer.of_files(requests.requests)[place] * has_records,
            bytes=layer.of_files(requests.bytes)[place] * has_records,
            histogram=layer.of_files(requests.histogram)[place] * has_records[:, np.newaxis],
            deviation_bytes=np.where(has_records, _deviations(layer)[place], np.nan),
        )


def _deviations(layer: Layer) -> Floats:
    """Tell the standard deviation of the bytes of the processes of each of `used_files`."""
    moved = (layer.reads.bytes + layer.writes.bytes).astype(np.float64)
    records = layer.of_files(np.ones(len(layer)))
    mean = layer.of_files(moved) / records
    # With a record for each process, the variance is the mean of the squares minus the square.
    own = layer.of_files(moved**2) / records - mean**2
    told = layer.of_files(layer.seconds("F_VARIANCE_RANK_BYTES"), np.maximum)
    reduced = layer.of_files(layer.is_reduced, np.logical_or)
    variance = np.where(reduced, np.where(records == 1, told, np.nan), own)
    return np.sqrt(np.maximum(variance, 0))


def _unpaired_by_counters(above: _Side, below: _Side, alike_share: float) -> Floats:
    """Count the requests without a pair, by counters; infinite if the layers are not alike."""
    paired = np.minimum(above.histogram, below.histogram).sum(axis=1)
    unpaired = np.maximum(above.requests, below.requests) - paired
    is_alike = np.minimum(above.bytes, below.bytes) >= alike_share * np.maximum(
        above.bytes, below.bytes
    )
    is_alike &= (above.bytes > 0) & (above.processes > 1) & (below.processes == above.processes)
    most = _SAME_DEVIATION * above.bytes / np.maximum(above.processes, 1)
    is_alike &= np.abs(above.deviation_bytes - below.deviation_bytes) <= most
    return np.where(is_alike, unpaired, np.inf)


def _unpaired_in_trace(
    facts: Facts, operation: Operation, above: _Side, below: _Side
) -> tuple[Floats, Bools]:
    """Count the requests without a pair in the trace, and tell which files it has as a whole."""
    files = above.file
    trace = facts.trace
    if trace is None or not len(files):
        return np.zeros(len(files)), np.zeros(len(files), bool)
    trace = trace.take(trace.operation == OPERATIONS.index(operation))
    row = np.searchsorted(facts.files.id, trace.file_id)
    place = np.minimum(np.searchsorted(files, row), len(files) - 1)
    [chosen] = (files[place] == row).nonzero()
    trace, place = trace.take(chosen), place[chosen]
    of_mpiio = trace.api == _MPIIO
    traced = [np.bincount(place[rows], minlength=len(files)) for rows in (of_mpiio, ~of_mpiio)]
    is_whole = (traced[0] == above.requests) & (traced[1] == below.requests)
    moving = trace.length > 0
    return _unpaired(trace.take(moving), place[moving], len(files)), is_whole


def _unpaired(trace: Operations, place: Ints, files: int) -> Floats:
    """Count the requests without a pair; infinite if a process has requests of MPI-IO alone."""
    _, rank = np.unique(trace.rank, return_inverse=True)
    process = place * (int(rank.max(initial=0)) + 1) + rank
    order = np.lexsort((trace.length, process))
    process, length, place = process[order], trace.length[order], place[order]
    of_mpiio = trace.api[order] == _MPIIO
    new = changes(process)
    called, reached = _counts(of_mpiio, new)
    callers = np.bincount(place[new], called > 0, minlength=files)
    alone = np.bincount(place[new], (called > 0) & (reached == 0), minlength=files)
    new = changes(process, length)
    above, below = _counts(of_mpiio, new)
    paired = np.bincount(place[new], np.minimum(above, below), minlength=files)
    larger = np.maximum(
        *(np.bincount(place[new], each, minlength=files) for each in (above, below))
    )
    return np.where((callers > 1) & (alone == 0), larger - paired, np.inf)


def _counts(of_mpiio: Bools, new: Bools) -> tuple[Ints, Ints]:
    """Count the requests of MPI-IO and of POSIX in each group of rows."""
    first = np.flatnonzero(new)
    sizes = np.diff(np.append(first, len(new)))
    above: Ints = np.add.reduceat(of_mpiio, first, dtype=np.int64) if len(first) else sizes
    return above, sizes - above
