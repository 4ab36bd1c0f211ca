"""The requests of a run as a trace that ui.perfetto.dev opens: a track for each rank."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ioncast.timelines.requests import TimedRequests
from ioncast_base.files import whole_file
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.visible_text import visible
from summario.phases.streams import MODULE_OF_API
from summario.reading.operations import UNKNOWN_OFFSET, Operations

_APIS = sorted(APIS, key=lambda api: api != "MPIIO")
_PIDS = np.array([1 + _APIS.index(api) for api in APIS])
# Perfetto multiplies microseconds by 1,000 and drops the rest, so 1.001 becomes 1,000 ns. It leaves
# out requests that then overlap others by 1 ns. Eighths of a microsecond are exact.
_TICKS_OF_A_MICROSECOND = 8
# Perfetto numbers threads in 32 bits.
_TRACKS_OF_A_RANK, _MOST_RANKS = 64, 1 << 26
_CHUNK = 1 << 14

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Slices:
    """Requests by process, rank and time, in ticks; of equal starts the longest first."""

    order: Ints
    pid: Ints
    tid: Ints
    start: Ints
    end: Ints


def write_perfetto(path: str | Path, requests: TimedRequests, names: Mapping[int, str]) -> None:
    """Write requests as Chrome's trace events. On an error an older file stays.

    Each api is a process and each rank a thread. Requests of a rank that overlap without one being
    within the other are on further threads, because Perfetto would leave them out.

    Parameters
    ----------
    names : mapping of int to str
        The path of each file id, as far as known.

    Raises
    ------
    InputError
        If the file cannot be written.

    Notes
    -----
    Times are microseconds since the job's start, rounded to an eighth, which every reader of JSON
    can represent.
    """
    slices = _slices(requests.operations)
    files = {} if requests.bin_seconds is not None else _files(requests.operations, names)
    with whole_file(path) as place, place.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents":[\n')
        file.write(",\n".join(_named_tracks(slices)))
        for event in _events(requests.operations, slices, files):
            file.write(",\n")
            file.write(event)
        file.write('\n],"displayTimeUnit":"ms"}\n')


def _slices(operations: Operations) -> _Slices:
    pid, rank = _PIDS[operations.api], np.minimum(operations.rank, _MOST_RANKS - 1)
    start, end = _ticks(operations.start_seconds), _ticks(operations.end_seconds)
    order = np.lexsort((-end, start, rank, pid))
    pid, rank, start, end = pid[order], rank[order], start[order], end[order]
    is_first = (np.diff(pid, prepend=0) != 0) | (np.diff(rank, prepend=-1) != 0)
    tid = rank * _TRACKS_OF_A_RANK + _tracks(np.cumsum(is_first), start, end)
    return _Slices(order, pid, tid, start, end)


def _ticks(seconds: NDArray[np.float64]) -> Ints:
    return np.rint(seconds * (1e6 * _TICKS_OF_A_MICROSECOND)).astype(np.int64)


def _tracks(group: Ints, start: Ints, end: Ints) -> Ints:
    """Number the track of each request in its group; the last track takes all that are left."""
    track = np.zeros(len(group), np.int64)
    overlaps = (group[1:] == group[:-1]) & (start[1:] < end[:-1])
    # Few programs have overlapping requests, and only their ranks need a loop over requests.
    rows = np.flatnonzero(np.isin(group, group[1:][overlaps]))
    for _ in range(_TRACKS_OF_A_RANK - 1):
        if not len(rows):
            break
        rows = rows[~_fitting(group[rows], start[rows], end[rows])]
        track[rows] += 1
    return track


def _fitting(group: Ints, start: Ints, end: Ints) -> NDArray[np.bool_]:
    """Select requests for one track of each group, each before, behind or within the others."""

    def fits() -> Iterator[bool]:
        current, open_ends = -1, [0]
        for number, first, last in _rows(group, start, end):
            if number != current:
                current, open_ends = number, []
            while open_ends and open_ends[-1] <= first:
                open_ends.pop()
            is_fitting = not open_ends or last <= open_ends[-1]
            if is_fitting:
                open_ends.append(last)
            yield is_fitting

    return np.fromiter(fits(), np.bool_, len(group))


def _rows(*columns: NDArray[np.generic]) -> Iterator[tuple[int, ...]]:
    """Make Python's numbers of columns a chunk at a time, because they need much memory."""
    for first in range(0, len(columns[0]), _CHUNK):
        yield from zip(
            *(column[first : first + _CHUNK].tolist() for column in columns), strict=True
        )


def _files(operations: Operations, names: Mapping[int, str]) -> dict[int, str]:
    """Write the argument `file` of each file id whose path is known."""
    ids = np.unique(operations.file_id).tolist()
    return {each: _argument("file", names[each]) for each in ids if each in names}


def _argument(name: str, text: str) -> str:
    return f',"{name}":{json.dumps(visible(text), ensure_ascii=False)}' if text else ""


def _named_tracks(slices: _Slices) -> Iterator[str]:
    """Write the names of processes and threads, and their order."""
    for pid in np.unique(slices.pid).tolist():
        yield from _named("process", pid, 0, MODULE_OF_API[_APIS[pid - 1]], pid)
        for tid in np.unique(slices.tid[slices.pid == pid]).tolist():
            rank, further = divmod(tid, _TRACKS_OF_A_RANK)
            name = f"rank {rank}, at the same time" if further else f"rank {rank}"
            yield from _named("thread", pid, tid, name, tid)


def _named(kind: str, pid: int, tid: int, name: str, place: int) -> Iterator[str]:
    for key, arguments in (("name", {"name": name}), ("sort_index", {"sort_index": place})):
        event = {"name": f"{kind}_{key}", "ph": "M", "pid": pid, "tid": tid, "args": arguments}
        yield json.dumps(event, separators=(",", ":"))


def _events(operations: Operations, slices: _Slices, files: Mapping[int, str]) -> Iterator[str]:
    hosts = [_argument("host", host) for host in operations.hosts or ("",)]
    for first in range(0, len(slices.order), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        table = operations.take(slices.order[chunk])
        start, end = slices.start[chunk], slices.end[chunk]
        for operation, pid, tid, start_us, us, length, offset, file_id, host in _rows(
            *(table.operation, slices.pid[chunk], slices.tid[chunk]),
            *(start / _TICKS_OF_A_MICROSECOND, (end - start) / _TICKS_OF_A_MICROSECOND),
            *(table.length, table.offset, table.file_id, table.host),
        ):
            known_offset = "" if offset == UNKNOWN_OFFSET else f',"offset":{offset}'
            yield (
                f'{{"name":"{OPERATIONS[operation]}","ph":"X","pid":{pid},"tid":{tid}'
                f',"ts":{start_us},"dur":{us},"args":{{"bytes":{length}{known_offset}'
                f"{files.get(file_id, '')}{hosts[host]}}}}}"
            )
