"""Differences of counters that run on, and that restart with their server or with a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ioncast.diagnosis.server_logs.sample_rows import (
    Column,
    Floats,
    Ints,
    ServerName,
    sample_tables,
)
from ioncast_base.errors import InputError
from ioncast_base.wording import listed

COUNTERS = ("read_bytes", "written_bytes", "operations")
_INTERVALS_AT_ONCE = 10_000
_NAN = float("nan")


class Reading(NamedTuple):
    """A counter at a time."""

    time_us: int
    value: float


def differences(
    time_us: Ints, counter: Floats, before: Reading | None = None
) -> tuple[Column, Reading | None]:
    """Subtract from each value of a server's counter the last known one, from `before` on.

    A sample after missing ones has all bytes since the last known one. A sample below the one
    before it is missing, because the counter has restarted; so is 0, which LMT notes for a server
    that does not answer. Times ascend. Returns the differences and the last reading.
    """
    earlier = before or Reading(0, _NAN)
    times = np.append(earlier.time_us, time_us)
    values = np.append(earlier.value, counter)
    with np.errstate(invalid="ignore"):
        values = np.where((values >= 0) & (values < 2**63), values, np.nan)
    was_positive = np.maximum.accumulate(np.nan_to_num(values)) > 0
    is_known = ~np.isnan(values) & ~((values == 0) & was_positive)
    [places] = is_known.nonzero()
    found = np.full(len(times), np.nan)
    starts = times.copy()
    found[places[1:]] = np.diff(values[places])
    starts[places[1:]] = times[places[:-1]]
    last = Reading(int(times[places[-1]]), float(values[places[-1]])) if len(places) else before
    return Column(np.where(found < 0, np.nan, found)[1:], starts[1:]), last


@dataclass(frozen=True)
class JobCounters:
    """The counters of a job at a server since `start_us`, if that is known."""

    start_us: int | None
    values: Mapping[str, float]


@dataclass(frozen=True)
class Snapshot:
    """All jobs' counters at a server at a time; the name "" has the counters of the server."""

    server: ServerName
    time_us: int
    jobs: Mapping[str, JobCounters]


class _CountedInterval(NamedTuple):
    """The sums over jobs at a server between two snapshots, in the order of `COUNTERS`.

    It is all that is kept of snapshots, each of which may have thousands of jobs.
    """

    server: ServerName
    start_us: int
    end_us: int
    sums: tuple[float, ...]


def rows_of_files(
    paths: Sequence[Path], snapshots_of: Callable[[Path], Iterator[Snapshot]]
) -> Iterator[pa.Table]:
    """Turn the snapshots of files, whatever their order, into rows of the times between them."""

    def first_us(path: Path) -> int:
        return next((each.time_us for each in snapshots_of(path)), 0)

    ordered = sorted(paths, key=first_us) if len(paths) > 1 else paths
    snapshots = (each for path in ordered for each in snapshots_of(path))
    yield from rows_of_snapshots(snapshots, str(paths[0]))


def rows_of_snapshots(snapshots: Iterable[Snapshot], where: str) -> Iterator[pa.Table]:
    """Turn snapshots of servers into rows of the intervals between them.

    The snapshots of a server ascend; a repeated one does not count. A job whose entry expired keeps
    no counters, and one that has none in the snapshot before has moved all its bytes since then.

    Raises
    ------
    InputError
        If no server has two snapshots, or if a repeated one has counters that no other one had.
    """
    last: dict[ServerName, Snapshot] = {}
    counted: dict[ServerName, set[str]] = {}
    waiting: list[_CountedInterval] = []
    has_rows = False
    for each in snapshots:
        before = last.get(each.server)
        names = {name for counters in each.jobs.values() for name in counters.values}
        known = counted.setdefault(each.server, set())
        if before is not None and each.time_us <= before.time_us:
            # A server without jobs has had no counters yet.
            if known and not names <= known:
                what = (
                    f"{listed(sorted(names - known))} of {each.server.kind} {each.server.server}"
                    " come after other counters of the same times"
                )
                remedy = "write all counters of a time into one file"
                raise InputError(what, where=where, remedy=remedy)
            continue
        known |= names
        last[each.server] = each
        if before is not None:
            sums = tuple(_moved(before, each, name) for name in COUNTERS)
            waiting.append(_CountedInterval(each.server, before.time_us, each.time_us, sums))
            has_rows = True
        if len(waiting) == _INTERVALS_AT_ONCE:
            yield from _rows(waiting, where)
            waiting = []
    if not has_rows:
        what = "the counters are of one time only, and only differences tell what servers moved"
        raise InputError(what, where=where, remedy="give files of several times together")
    yield from _rows(waiting, where)


def _rows(intervals: list[_CountedInterval], where: str) -> Iterator[pa.Table]:
    if not intervals:
        return
    servers, starts, ends, sums = zip(*intervals, strict=True)
    places = {server: place for place, server in enumerate(dict.fromkeys(servers))}
    columns = {
        name: Column(np.array(values), np.array(starts))
        for name, values in zip(COUNTERS, zip(*sums, strict=True), strict=True)
    }
    server = np.array([places[each] for each in servers])
    yield from sample_tables(list(places), server, np.array(ends), columns, where)


def _moved(old: Snapshot, new: Snapshot, name: str) -> float:
    """Add up what jobs moved; NaN if a counter restarted, or has no beginning."""
    moved, is_counted = 0.0, not new.jobs
    for job, counters in new.jobs.items():
        value = counters.values.get(name)
        if value is None:
            continue
        is_counted = True
        earlier = old.jobs.get(job)
        is_new = counters.start_us is not None and counters.start_us >= old.time_us
        if is_new or (earlier is None and job):
            moved += value
            continue
        difference = _NAN if earlier is None else value - earlier.values.get(name, _NAN)
        if not difference >= 0:
            return _NAN
        moved += difference
    return moved if is_counted else _NAN
