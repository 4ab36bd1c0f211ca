"""Applications that disturb each other: they use the same server at the same time.

Source: Kim et al. (2014), IOPro, section 6.3. A slow server alone proves nothing, because
collective calls wait for the slowest server: blame needs common time and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from math import fsum
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = Mapping[str, Any]
# Sums of later times lose microseconds as floats.
_MOST_US = 1 << 52


class Server(NamedTuple):
    """A server of a system: an OST, or an I/O node (ION); all count as equally fast."""

    system: str
    kind: str
    number: int


@dataclass(frozen=True)
class TimeAlone:
    """The run time that an application has without others, and how it is known.

    `runs` are the runs behind it; `server_seconds` is the largest busy time at one server, known
    of traces only.
    """

    basis: Literal["alone", "history", "prediction"]
    seconds: float
    runs: int
    server_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class ServerUse:
    """The I/O of an application at a server, from its first to its last request there.

    `requests` are the starts and ends in microseconds since 1970 (UTC), and bytes; shape (3, n).
    `share` is of the bytes of all applications. The common time is the time in which others move
    `others_bytes` there. An estimated use spreads the bytes of files evenly.
    """

    log: str
    server: Server
    is_estimated: bool
    requests: Floats
    start_us: int
    end_us: int
    bytes: float
    busy_seconds: float
    share: float = 1.0
    common_bytes: float = 0.0
    common_busy_seconds: float = 0.0
    others_bytes: float = 0.0


@dataclass(frozen=True)
class Disturbance:
    """The bytes of an application and of another one (`by`) at a server in their common time.

    `blame` is the other one's share of the lost time, and `blamed_seconds` that time, if known.
    Both are only for the application's slowest server.
    """

    log: str
    by: str
    server: Server
    start_us: int
    end_us: int
    bytes: float
    by_bytes: float
    blame: float | None = None
    blamed_seconds: float | None = None


@dataclass(frozen=True)
class DisturbedRun:
    """The run of an application beside its time alone; None where nothing is known.

    `server_seconds` is its largest busy time at one server, and `slowest` the server where it was
    busy longest while others used it. `lost_seconds` is the run time beyond the time alone, which
    may be negative, and `slowdown` its ratio to the time alone.
    """

    log: str
    path: str
    program: str | None
    job_id: int | None
    processes: int | None
    seconds: float | None
    alone: TimeAlone | None
    lost_seconds: float | None
    slowdown: float | None
    server_seconds: float | None
    slowest: Server | None


@dataclass(frozen=True)
class Move:
    """A change after which two applications share no server of a kind.

    `kept` are the servers that `log` would still use; without them it needs other ones. At most,
    its time alone grows by the share `cost`, and by `cost_seconds` if that time is known.
    """

    log: str
    beside: str
    kind: str
    left: tuple[int, ...]
    kept: tuple[int, ...]
    cost: float | None
    cost_seconds: float | None


@dataclass(frozen=True)
class Interference:
    """Applications that ran together.

    `bottlenecks` are the servers of each kind with most common bytes, `undated` the logs whose
    start is unknown.
    """

    runs: tuple[DisturbedRun, ...]
    uses: tuple[ServerUse, ...]
    disturbances: tuple[Disturbance, ...]
    bottlenecks: tuple[Server, ...]
    moves: tuple[Move, ...]
    undated: tuple[str, ...]


def interference_of(
    jobs: Sequence[Row], uses: pa.Table, alone: Mapping[str, TimeAlone]
) -> Interference:
    """Find who used the same servers at the same time, and who lost how much time by whom.

    Parameters
    ----------
    jobs : sequence of mapping
        Rows of the query `jobs-together`: a log is an application.
    uses : pyarrow.Table
        Rows of the query `server-uses`. Rows whose times or bytes are impossible do not count.
    alone : mapping of str to TimeAlone
        The time alone of each log, where it is known.
    """
    used: list[ServerUse] = []
    disturbances: list[Disturbance] = []
    for _, group in groupby(server_uses(jobs, uses), lambda use: use.server):
        of_server = list(group)
        found = list(_disturbances(of_server))
        total = fsum(use.bytes for use in of_server)
        used += [
            _with_common(use, total, [each for each in found if each.log == use.log])
            for use in of_server
        ]
        disturbances += found
    runs = {row["log"]: _run(row, alone.get(row["log"]), used) for row in jobs}
    at = {(use.log, use.server): use for use in used}
    blamed = tuple(
        _blamed(each, runs[each.log], at[each.log, each.server].others_bytes)
        for each in disturbances
    )
    bottlenecks: dict[str, tuple[float, Server]] = {}
    for server, at_server in groupby(used, lambda use: use.server):
        common = fsum(use.common_bytes for use in at_server)
        if common > bottlenecks.get(server.kind, (0.0,))[0]:
            bottlenecks[server.kind] = common, server
    undated = tuple(row["log"] for row in jobs if not _is_dated(row["start_us"]))
    moves = tuple(_moves(blamed, used, runs))
    return Interference(
        *(
            tuple(runs.values()),
            tuple(used),
            blamed,
            tuple(each for _, each in bottlenecks.values()),
            moves,
            undated,
        )
    )


def server_uses(jobs: Sequence[Row], uses: pa.Table) -> list[ServerUse]:
    """List the use of each server by each log, by server; `interference_of` has the parameters."""
    dated = {row["log"]: row for row in jobs if _is_dated(row["start_us"])}
    keys = ["log", "server_kind", "server", "estimated"]
    lists = [(name, "list") for name in ("start_seconds", "end_seconds", "bytes")]
    groups = uses.group_by(keys, use_threads=False).aggregate(lists)
    found = []
    for row in range(len(groups)):
        log, kind, number, is_estimated = (groups[name][row].as_py() for name in keys)
        if log not in dated:
            continue
        starts, ends, moved = (
            groups[f"{name}_list"][row].values.to_numpy(zero_copy_only=False).astype(np.float64)
            for name, _ in lists
        )
        is_possible = (starts >= 0) & (starts <= ends) & (ends < _MOST_US / 1e6) & (moved >= 0)
        if not is_possible.any():
            continue
        start_us = dated[log]["start_us"]
        requests = np.array((starts * 1e6 + start_us, ends * 1e6 + start_us, moved))[:, is_possible]
        # A microsecond is the resolution of DXT.
        requests[1] = np.maximum(requests[1], requests[0] + 1)
        # Darshan 3.4.0 and older note whole seconds of the start.
        late_us = 0 if start_us % 1_000_000 else 1_000_000
        found.append(
            ServerUse(
                *(log, Server(dated[log]["system"] or "", kind, number), is_estimated, requests),
                *(round(requests[0].min()), round(requests[1].max()) + late_us),
                *(float(requests[2].sum()), float(_busy(requests)[2].sum() / 1e6)),
            )
        )
    return sorted(found, key=lambda use: (use.server, use.log))


def bytes_by_time(requests: Floats, edges_us: Sequence[float] | Floats) -> Floats:
    """Add up the bytes of requests, spread evenly, between times; shape (len(edges_us) - 1,)."""
    starts, ends, moved = requests
    return np.diff(
        [(moved * ((edge - starts) / (ends - starts)).clip(0, 1)).sum() for edge in edges_us]
    )


def _is_dated(start_us: int | None) -> bool:
    return start_us is not None and 0 <= start_us <= _MOST_US


def _busy(intervals: Floats) -> Floats:
    """Join intervals to those that do not overlap, with their lengths instead of bytes."""
    order = np.argsort(intervals[0], kind="stable")
    starts, ends = intervals[0][order], np.maximum.accumulate(intervals[1][order])
    is_last = np.append(starts[1:] > ends[:-1], True)
    starts, ends = starts[np.roll(is_last, 1)], ends[is_last]
    return np.array((starts, ends, ends - starts))


def _disturbances(uses: Sequence[ServerUse]) -> Iterator[Disturbance]:
    """Yield each two applications that both move bytes at a server in their common time."""
    for one, other in permutations(uses, 2):
        times = max(one.start_us, other.start_us), min(one.end_us, other.end_us)
        if times[0] < times[1]:
            moved, by_moved = (
                float(bytes_by_time(each.requests, times)[0]) for each in (one, other)
            )
            if moved > 0 and by_moved > 0:
                yield Disturbance(one.log, other.log, one.server, *times, moved, by_moved)


def _with_common(use: ServerUse, total: float, found: Sequence[Disturbance]) -> ServerUse:
    """Add the share of all bytes at the server, and the values of the common time."""
    share = use.bytes / total if total else 0.0
    if not found:
        return replace(use, share=share)
    edges_us = _busy(np.array([(each.start_us, each.end_us) for each in found]).T)[:2].T.ravel()
    return replace(
        use,
        share=share,
        common_bytes=float(bytes_by_time(use.requests, edges_us)[::2].sum()),
        common_busy_seconds=float(bytes_by_time(_busy(use.requests), edges_us)[::2].sum() / 1e6),
        others_bytes=fsum(each.by_bytes for each in found),
    )


def _run(row: Row, alone: TimeAlone | None, uses: Sequence[ServerUse]) -> DisturbedRun:
    seconds = row["run_seconds"] if (row["run_seconds"] or 0) > 0 else None
    alone = alone if alone and alone.seconds > 0 else None
    lost = seconds - alone.seconds if seconds and alone else None
    own = [use for use in uses if use.log == row["log"]]
    slowest = max(
        (use for use in own if use.others_bytes),
        key=lambda use: (use.common_busy_seconds, use.others_bytes),
        default=None,
    )
    names = ("log", "path", "program", "job_id", "processes")
    return DisturbedRun(
        **{name: row[name] for name in names},
        seconds=seconds,
        alone=alone,
        lost_seconds=lost,
        slowdown=lost / alone.seconds if lost is not None and alone else None,
        server_seconds=max((use.busy_seconds for use in own), default=None),
        slowest=slowest.server if slowest else None,
    )


def _blamed(each: Disturbance, run: DisturbedRun, others_bytes: float) -> Disturbance:
    """Add the blame, if this is at the slowest server of the disturbed log."""
    if each.server != run.slowest:
        return each
    blame, lost = each.by_bytes / others_bytes, run.lost_seconds
    seconds = None if lost is None else max(lost, 0.0) * blame
    return replace(each, blame=blame, blamed_seconds=seconds)


def _moves(
    disturbances: Sequence[Disturbance],
    uses: Sequence[ServerUse],
    runs: Mapping[str, DisturbedRun],
) -> Iterator[Move]:
    """Yield for each two logs the cheaper way to share no server of a kind."""
    shared: dict[tuple[str, str, str], set[int]] = {}
    for each in disturbances:
        shared.setdefault((each.log, each.by, each.server.kind), set()).add(each.server.number)
    used: dict[tuple[str, str], set[int]] = {}
    for use in uses:
        used.setdefault((use.log, use.server.kind), set()).add(use.server.number)
    for (log, other, kind), left in shared.items():
        if log > other:
            continue
        moved = min((log, other), key=lambda each: len(left) / len(used[each, kind]))
        kept = used[moved, kind] - left
        cost = len(used[moved, kind]) / len(kept) - 1 if kept and kind == "OST" else None
        alone = runs[moved].alone
        yield Move(
            *(moved, other if moved == log else log, kind),
            *(tuple(sorted(left)), tuple(sorted(kept)), cost),
            cost_seconds=cost * alone.seconds if cost is not None and alone else None,
        )
