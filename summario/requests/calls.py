"""The MPI-IO calls that traced POSIX requests belong to.

DXT gives requests no ids, so times tell: a POSIX request belongs to the MPI-IO call of its process
and file during which it runs. A collective call has the requests of an aggregator that belong to
the aggregator's own call, because neighbouring collective calls of different processes overlap. The
ids are those of S. J. Kim et al., "IOPro: a parallel I/O profiling and visualization framework for
high-performance storage systems", 2014.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.phases.streams import changes
from summario.reading.file_ids import values_of_files
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.reading.records import Records

NO_CALL = -1
# The clock is the same in both layers, so this covers only the rounding of times.
CLOCK_SECONDS = 1e-6

_POSIX, _MPIIO = APIS.index("POSIX"), APIS.index("MPIIO")
_WRITE = OPERATIONS.index("write")
# A process has one open call a thread. The bound keeps damaged traces from taking hours.
_MOST_OPEN_CALLS = 64

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class CallsOfRequests:
    """The MPI-IO call of each traced request, in the order of the trace.

    Each array has shape (requests,), and `NO_CALL` where a number is not known.

    Attributes
    ----------
    call : array of int64
        The index of the call in the trace; an MPI-IO call has its own.
    call_number : array of int64
        The number of this call among the calls of its process to all files, by start, from 0.
    instance : array of int64
        The number of this call among the collective calls of its process to the file, from 0. It
        is the same collective call in all processes.
    fragment : array of int64
        The number of a POSIX request among those of its call, by start, from 0.
    is_cut : array of bool
        Requests that end after the first time at which a trace of their process was full. They
        belong to no call, because other requests of theirs may be missing.
    not_unique : int
        The number of calls of files with collective calls whose instance is not known.
    """

    call: Ints
    call_number: Ints
    instance: Ints
    fragment: Ints
    is_cut: Mask
    not_unique: int

    def without_call(self, trace: Operations) -> Mask:
        """Tell which POSIX requests belong to no call."""
        without: Mask = (trace.api == _POSIX) & (self.call == NO_CALL)
        return without

    def joined_share(self, trace: Operations) -> float:
        """Compute the share of the POSIX bytes that belong to calls; NaN without any."""
        of_posix = trace.api == _POSIX
        total = trace.length[of_posix].sum()
        joined = trace.length[of_posix & (self.call != NO_CALL)].sum()
        return float(joined / total) if total else float("nan")


def join_calls(
    trace: Operations, mpiio: Sequence[Records], full_traces: Collection[Api] = ()
) -> CallsOfRequests:
    """Find the MPI-IO call of each traced request.

    A read belongs to a read call; a write call has writes, and reads of the bytes around them. Of
    several calls the one with the bytes of the request counts, then the last one to start.

    Parameters
    ----------
    trace : Operations
        The requests of both layers, in any order.
    mpiio : sequence of Records
        The MPI-IO records of the run, which count the kinds of calls of each file.
    full_traces : collection of str
        The apis whose trace Darshan marked as partial.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> from summario.reading.operations import operations_of
    >>> log = read_log("tests/summario/fixtures/ior/write-segments-cb2-dxt.darshan")
    >>> trace = operations_of(log)
    >>> calls = join_calls(trace, [log.records["MPI-IO"]])
    >>> calls.joined_share(trace), int(calls.call_number.max()), int(calls.fragment.max())
    (1.0, 15, 2)
    """
    group, files = _groups(trace)
    [calls] = (trace.api == _MPIIO).nonzero()
    calls = calls[np.lexsort((trace.start_seconds[calls], group[calls]))]
    [requests] = (trace.api == _POSIX).nonzero()
    kinds = _Kinds.of(mpiio, files)
    place = np.full(len(requests), NO_CALL)
    for operation in range(len(OPERATIONS)):
        of_operation = trace.operation[requests] == operation
        own = calls if operation != _WRITE else calls[trace.operation[calls] == _WRITE]
        asked = requests[of_operation]
        if not len(own) or not len(asked):
            continue
        found = _during(trace, group, own, asked)
        late = (found == NO_CALL) & kinds.outlived[group[asked]]
        if late.any():
            found[late] = _of_bytes(trace, group, own, asked[late])
        place[of_operation] = np.where(found == NO_CALL, NO_CALL, own[found])
    call = np.full(len(trace), NO_CALL)
    call[requests], call[calls] = place, calls
    is_cut = _cut(trace, full_traces)
    call[is_cut | ((call != NO_CALL) & is_cut[call])] = NO_CALL
    return _numbered(trace, group, calls, call, is_cut, kinds, bool(full_traces))


class _Kinds(NamedTuple):
    """Kinds of the calls to the file of each group."""

    file: NDArray[np.uint64]
    collective: Floats
    others: Floats
    outlived: Mask

    @classmethod
    def of(cls, mpiio: Sequence[Records], files: NDArray[np.uint64]) -> _Kinds:
        """Add up the counters of files; nonblocking and split calls are outlived by requests."""
        collective, others, outlived = np.zeros((3, len(files)))
        for records in mpiio:
            for kind in ("COLL", "INDEP", "NB", "SPLIT"):
                reads, writes = (
                    records.integer(f"MPIIO_{kind}_{operation}").astype(np.float64)
                    for operation in ("READS", "WRITES")
                )
                sums = values_of_files(reads + writes, records.ids, files, np.add, without=0)
                if kind == "COLL":
                    collective += sums
                else:
                    others += sums
                    outlived += sums if kind != "INDEP" else 0
        return cls(files, collective, others, outlived > 0)


def _groups(trace: Operations) -> tuple[Ints, NDArray[np.uint64]]:
    """Number the pairs of file and rank by file; also list the file of each pair."""
    [first] = changes(trace.file_id, trace.rank).nonzero() if len(trace) else [np.zeros(0, int)]
    file, rank = trace.file_id[first], trace.rank[first]
    order = np.lexsort((rank, file))
    is_new = changes(file[order], rank[order]) if len(order) else np.zeros(0, bool)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return np.repeat(number, np.diff(first, append=len(trace))), file[order][is_new]


def _during(trace: Operations, group: Ints, calls: Ints, requests: Ints) -> Ints:
    """Find the place in `calls`, sorted by group and start, of the call around each request."""
    end, of_call, of_request = trace.end_seconds[calls], group[calls], group[requests]
    least = trace.end_seconds[requests] - CLOCK_SECONDS
    last = _last_before(
        (of_call, trace.start_seconds[calls]),
        (of_request, trace.start_seconds[requests] + CLOCK_SECONDS),
    )
    latest = _Latest.of(end, of_call)
    found = latest.reaching(last, least, of_request)
    # Several calls are open at a time only where threads share a process.
    asked = np.flatnonzero(~_has_bytes(trace, calls[found], requests) & (found > 0))
    before = found[asked]
    for _ in range(_MOST_OPEN_CALLS):
        before = latest.reaching(before - 1, least[asked], of_request[asked])
        asked, before = asked[before >= 0], before[before >= 0]
        if not len(asked):
            break
        is_theirs = _has_bytes(trace, calls[before], requests[asked])
        found[asked[is_theirs]] = before[is_theirs]
        asked, before = asked[~is_theirs], before[~is_theirs]
    return found


def _of_bytes(trace: Operations, group: Ints, calls: Ints, requests: Ints) -> Ints:
    """Find the place in `calls` of the earlier call with the bytes of each request."""
    order = np.lexsort((trace.start_seconds[calls], trace.offset[calls], group[calls]))
    by_offset = calls[order]
    last = _last_before(
        tuple(each[by_offset] for each in (group, trace.offset, trace.start_seconds)),
        (
            group[requests],
            trace.offset[requests],
            trace.start_seconds[requests] + CLOCK_SECONDS,
        ),
    )
    call = by_offset[last]
    is_theirs = (last >= 0) & (group[call] == group[requests])
    is_theirs &= trace.start_seconds[call] <= trace.start_seconds[requests] + CLOCK_SECONDS
    is_theirs &= _has_bytes(trace, call, requests)
    return np.where(is_theirs, order[last], NO_CALL)


def _has_bytes(trace: Operations, calls: Ints, requests: Ints) -> Mask:
    """Tell which calls asked for all bytes of the request in the same place."""
    offset, of_call = trace.offset[requests], trace.offset[calls]
    has: Mask = (of_call != UNKNOWN_OFFSET) & (of_call <= offset)
    has &= offset + trace.length[requests] <= of_call + trace.length[calls]
    return has


def _last_before(
    of_calls: tuple[NDArray[np.generic], ...], of_requests: tuple[NDArray[np.generic], ...]
) -> Ints:
    """Find the last of the sorted calls whose keys are not above those of each request."""
    calls = len(of_calls[0])
    keys = [np.concatenate(pair) for pair in zip(of_calls, of_requests, strict=True)]
    order = np.lexsort(keys[::-1])
    is_request = order >= calls
    last = np.cumsum(~is_request) - 1
    found = np.empty(len(of_requests[0]), np.int64)
    found[order[is_request] - calls] = last[is_request]
    return found


class _Latest(NamedTuple):
    """Ends of calls, with the largest end of a group so far, and the maxima of a binary tree."""

    group: Ints
    so_far: Floats
    levels: list[Floats]

    @classmethod
    def of(cls, end: Floats, group: Ints) -> _Latest:
        order = np.argsort(end, kind="stable")
        place = np.empty(len(end), np.int64)
        place[order] = np.arange(len(end))
        place = np.maximum.accumulate(place + group * len(end)) - group * len(end)
        levels = [end]
        while len(levels[-1]) > 1:
            if len(levels[-1]) % 2:
                levels[-1] = np.append(levels[-1], -np.inf)
            levels.append(levels[-1].reshape(-1, 2).max(axis=1))
        return cls(group, end[order][place], levels)

    def reaching(self, upto: Ints, least: Floats, group: Ints) -> Ints:
        """Find the latest call up to a place that ends at `least` or later, in its group."""
        possible = (upto >= 0) & (self.group[upto] == group) & (self.so_far[upto] >= least)
        [asked] = (possible & (self.levels[0][upto] < least)).nonzero()
        found = np.where(possible, upto, NO_CALL)
        found[asked] = self._earlier(upto[asked], least[asked])
        return found

    def _earlier(self, upto: Ints, least: Floats) -> Ints:
        """Climb to a subtree that has such a call, then go down to its latest one."""
        node, level = upto.copy(), np.full(len(upto), -1)
        for depth, ends in enumerate(self.levels):
            [left] = ((level < 0) & (node % 2 == 0)).nonzero()
            level[left[ends[node[left]] >= least[left]]] = depth
            climbing = level < 0
            node[climbing] = (node[climbing] + 1) // 2 - 1
        for depth in range(len(self.levels) - 1, 0, -1):
            [inner] = (level >= depth).nonzero()
            right = 2 * node[inner] + 1
            node[inner] = right - (self.levels[depth - 1][right] < least[inner])
        return node


def _cut(trace: Operations, full_traces: Collection[Api]) -> Mask:
    """Tell which requests end after the last one of a trace of their process that was full."""
    if not full_traces:
        return np.zeros(len(trace), bool)
    ranks, rank = np.unique(trace.rank, return_inverse=True)
    until = np.full(len(ranks), np.inf)
    for api in full_traces:
        traced = trace.api == APIS.index(api)
        last = np.full(len(ranks), -np.inf)
        np.maximum.at(last, rank[traced], trace.end_seconds[traced])
        until = np.minimum(until, np.where(last > -np.inf, last, np.inf))
    cut: Mask = trace.end_seconds > until[rank] + CLOCK_SECONDS
    return cut


def _numbered(
    trace: Operations,
    group: Ints,
    calls: Ints,
    call: Ints,
    is_cut: Mask,
    kinds: _Kinds,
    is_partial: bool,
) -> CallsOfRequests:
    """Number the calls, sorted by group and start, and the requests of each."""
    own_number, own_instance = np.full((2, len(trace)), NO_CALL)
    own_number[calls] = _places(trace.rank[calls], trace.start_seconds[calls])
    instance, not_unique = _instances(group[calls], kinds, is_partial)
    own_instance[calls] = instance
    fragment = np.full(len(trace), NO_CALL)
    [joined] = ((trace.api == _POSIX) & (call != NO_CALL)).nonzero()
    fragment[joined] = _places(call[joined], trace.start_seconds[joined])
    known = call != NO_CALL
    return CallsOfRequests(
        call=call,
        call_number=np.where(known, own_number[call], NO_CALL),
        instance=np.where(known, own_instance[call], NO_CALL),
        fragment=fragment,
        is_cut=is_cut,
        not_unique=not_unique,
    )


def _places(group: Ints, start: Floats) -> Ints:
    """Number the members of each group by start, from 0."""
    order = np.lexsort((start, group))
    found = np.empty(len(order), np.int64)
    found[order] = _numbers(group[order])
    return found


def _numbers(group: Ints) -> Ints:
    """Number the rows of each group, which are together."""
    [first] = changes(group).nonzero() if len(group) else [np.zeros(0, np.int64)]
    return np.arange(len(group)) - np.repeat(first, np.diff(first, append=len(group)))


def _instances(group: Ints, kinds: _Kinds, is_partial: bool) -> tuple[Ints, int]:
    """Number the collective calls of calls sorted by group; also count those without a number.

    Darshan counts the collective calls of a file, and a process with exactly its share of them has
    no other calls. A process with more calls is not told apart. Where a file has only collective
    calls, those before the trace was full keep their numbers.
    """
    counts = np.bincount(group, minlength=len(kinds.file))
    has_calls = counts > 0
    files = np.cumsum(changes(kinds.file)) - 1 if len(kinds.file) else group
    processes = np.bincount(files, has_calls)[files]
    share = kinds.collective / np.maximum(processes, 1)
    fewest = np.full(len(processes), np.inf)
    np.minimum.at(fewest, files[has_calls], counts[has_calls])
    known = (fewest[files] >= share) & (counts == share)
    known |= is_partial & (kinds.others == 0)
    known &= kinds.collective > 0
    instance = np.where(known[group], _numbers(group), NO_CALL)
    return instance, int(np.count_nonzero((kinds.collective > 0)[group] & ~known[group]))
