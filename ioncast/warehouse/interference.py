"""Applications that disturb each other: they use the same server at the same time.

Source: Kim et al. (2014), IOPro, section 6.3. A slow server alone proves nothing, because
collective calls wait for the slowest server: blame needs common time and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Basis = Literal["alone", "history", "prediction"]
Row = Mapping[str, Any]
# DXT's resolution; a shorter request gets this duration.
_SHORTEST_S = 1e-6
# Times of later years lose microseconds as floats.
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

    basis: Basis
    seconds: float
    runs: int
    server_seconds: float | None = None


@dataclass(frozen=True)
class ServerUse:
    """The I/O of an application at a server, from its first to its last request there.

    `share` is of the bytes of all applications. `common_bytes` and `common_busy_seconds` are of the
    time in which others use the server; an estimated use spreads the bytes of files evenly.
    """

    log: str
    server: Server
    start_us: int
    end_us: int
    bytes: float
    share: float
    busy_seconds: float
    common_bytes: float
    common_busy_seconds: float
    is_estimated: bool


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
    busy longest while others used it.
    """

    log: str
    path: str
    program: str | None
    job_id: int | None
    processes: int | None
    seconds: float | None
    alone: TimeAlone | None
    server_seconds: float | None
    slowest: Server | None

    @property
    def lost_seconds(self) -> float | None:
        """The run time beyond the time alone, which may be negative."""
        if self.alone is None or self.seconds is None:
            return None
        return self.seconds - self.alone.seconds

    @property
    def slowdown(self) -> float | None:
        """The run time over the time alone, minus 1."""
        lost = self.lost_seconds
        return None if lost is None or self.alone is None else lost / self.alone.seconds


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


class _Use(NamedTuple):
    """Requests of a log at a server: seconds since the first job's start, and bytes."""

    log: str
    server: Server
    starts: Floats
    ends: Floats
    bytes: Floats
    end: float
    is_estimated: bool

    @property
    def start(self) -> float:
        return float(self.starts[0])


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
    dated = {row["log"]: row for row in jobs if _is_dated(row["start_us"])}
    origin_us = min((row["start_us"] for row in dated.values()), default=0)
    found = list(_uses(dated, uses, origin_us))
    by_server = [
        list(group) for _, group in groupby(sorted(found, key=_place), lambda use: use.server)
    ]
    server_uses = tuple(_server_use(use, group, origin_us) for group in by_server for use in group)
    disturbances = [
        each
        for group in by_server
        for one, other in permutations(group, 2)
        if (each := _disturbance(one, other, origin_us)) is not None
    ]
    slowest = _slowest(server_uses, disturbances)
    runs = tuple(_run(row, alone.get(row["log"]), server_uses, slowest) for row in jobs)
    blamed = tuple(_blamed(each, disturbances, runs) for each in disturbances)
    return Interference(
        runs,
        server_uses,
        blamed,
        _bottlenecks(server_uses),
        tuple(_moves(blamed, server_uses, alone)),
        tuple(row["log"] for row in jobs if row["log"] not in dated),
    )


def largest_server_seconds(uses: pa.Table) -> float | None:
    """Find the largest busy time at one server in the rows of `server-uses` of one log."""
    job = {"log": uses["log"][0].as_py(), "start_us": 0, "system": None} if len(uses) else None
    found = _uses({job["log"]: job}, uses, 0) if job else ()
    return max((_busy_seconds(use) for use in found), default=None)


def bytes_by_time(uses: pa.Table, job: Row, server: Server, edges_us: Sequence[int]) -> Floats:
    """Add up the bytes of a log at a server between times in UTC; shape (len(edges_us) - 1,)."""
    origin_us = edges_us[0]
    edges = np.array([(each - origin_us) / 1e6 for each in edges_us])
    moved = np.zeros(len(edges) - 1)
    for use in _uses({job["log"]: job}, uses, origin_us):
        if use.server == server:
            for place, window in enumerate(pairwise(edges)):
                moved[place] += _bytes_within(use, _union(*np.array([window]).T))
    return moved


def _is_dated(start_us: int | None) -> bool:
    return start_us is not None and 0 <= start_us <= _MOST_US


def _place(use: _Use) -> tuple[Server, str]:
    return use.server, use.log


def _uses(dated: Mapping[str, Row], uses: pa.Table, origin_us: int) -> Iterator[_Use]:
    """Yield the possible requests of each log at each server, by start."""
    starts, ends, moved = (
        uses[name].cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy()
        for name in ("start_seconds", "end_seconds", "bytes")
    )
    is_possible = (starts >= 0) & (starts <= ends) & (ends < _MOST_US / 1e6) & (moved >= 0)
    keys = [uses[name].combine_chunks().dictionary_encode() for name in ("log", "server_kind")]
    columns = [*(each.indices.to_numpy() for each in keys), uses["server"].to_numpy()]
    [rows] = is_possible.nonzero()
    rows = rows[np.lexsort([starts[rows], *(column[rows] for column in columns)])]
    changes = np.zeros(max(len(rows) - 1, 0), bool)
    for column in columns:
        changes |= np.diff(column[rows]) != 0
    for part in np.split(rows, changes.nonzero()[0] + 1) if len(rows) else ():
        log, kind = (each.dictionary[int(each.indices[part[0]].as_py())].as_py() for each in keys)
        if log not in dated:
            continue
        start_us = dated[log]["start_us"]
        shift = (start_us - origin_us) / 1e6
        # Darshan 3.4.0 and older note whole seconds of the start.
        late = 0.0 if start_us % 1_000_000 else 1.0
        from_s = starts[part] + shift
        until_s = np.maximum(ends[part] + shift, from_s + _SHORTEST_S)
        yield _Use(
            log,
            Server(dated[log]["system"] or "", kind, int(columns[2][part[0]])),
            *(from_s, until_s, moved[part]),
            end=float(until_s.max()) + late,
            is_estimated=bool(uses["estimated"][int(part[0])].as_py()),
        )


def _union(starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Join intervals to windows that do not overlap."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    is_new = np.append(starts[1:] > ends[:-1], True)
    return starts[np.append(True, is_new[:-1])], ends[is_new]


def _seconds_within(starts: Floats, ends: Floats, windows: tuple[Floats, Floats]) -> Floats:
    """Measure how long each interval lies in windows that do not overlap."""
    edges = np.column_stack(windows).ravel()
    seconds = np.append(0.0, np.cumsum(windows[1] - windows[0]))
    covered = np.column_stack((seconds[:-1], seconds[1:])).ravel()
    within: Floats = np.interp(ends, edges, covered) - np.interp(starts, edges, covered)
    return within


def _busy_seconds(use: _Use, windows: tuple[Floats, Floats] | None = None) -> float:
    starts, ends = _union(use.starts, use.ends)
    return float(
        (ends - starts if windows is None else _seconds_within(starts, ends, windows)).sum()
    )


def _bytes_within(use: _Use, windows: tuple[Floats, Floats]) -> float:
    shares = _seconds_within(use.starts, use.ends, windows) / (use.ends - use.starts)
    return float((use.bytes * shares).sum())


def _server_use(use: _Use, group: Sequence[_Use], origin_us: int) -> ServerUse:
    total = sum(float(each.bytes.sum()) for each in group)
    moved = float(use.bytes.sum())
    others = [each for each in group if each.log != use.log]
    common_bytes = common_busy = 0.0
    if others:
        spans = np.array([(each.start, each.end) for each in others])
        windows = _union(*spans.T)
        common_bytes, common_busy = _bytes_within(use, windows), _busy_seconds(use, windows)
    return ServerUse(
        *(use.log, use.server, *_wall_clock(use.start, use.end, origin_us), moved),
        share=moved / total if total else 0.0,
        busy_seconds=_busy_seconds(use),
        common_bytes=common_bytes,
        common_busy_seconds=common_busy,
        is_estimated=use.is_estimated,
    )


def _wall_clock(start: float, end: float, origin_us: int) -> tuple[int, int]:
    return origin_us + round(start * 1e6), origin_us + round(end * 1e6)


def _disturbance(use: _Use, other: _Use, origin_us: int) -> Disturbance | None:
    start, end = max(use.start, other.start), min(use.end, other.end)
    if start >= end:
        return None
    window = _union(np.array([start]), np.array([end]))
    moved, by_moved = _bytes_within(use, window), _bytes_within(other, window)
    if not moved or not by_moved:
        return None
    return Disturbance(
        *(use.log, other.log, use.server, *_wall_clock(start, end, origin_us), moved, by_moved)
    )


def _slowest(uses: Sequence[ServerUse], disturbances: Sequence[Disturbance]) -> dict[str, Server]:
    """Find where each disturbed log was busy longest while others moved bytes there."""
    others: dict[tuple[str, Server], float] = {}
    for each in disturbances:
        others[each.log, each.server] = others.get((each.log, each.server), 0) + each.by_bytes
    slowest: dict[str, ServerUse] = {}
    for use in uses:
        if (use.log, use.server) in others:
            known = slowest.setdefault(use.log, use)
            if (use.common_busy_seconds, others[use.log, use.server]) > (
                known.common_busy_seconds,
                others[known.log, known.server],
            ):
                slowest[use.log] = use
    return {log: use.server for log, use in slowest.items()}


def _run(
    row: Row,
    alone: TimeAlone | None,
    uses: Sequence[ServerUse],
    slowest: Mapping[str, Server],
) -> DisturbedRun:
    log, seconds = row["log"], row["run_seconds"]
    return DisturbedRun(
        *(log, row["path"], row["program"], row["job_id"], row["processes"]),
        seconds=seconds if seconds is not None and seconds > 0 else None,
        alone=alone if alone is not None and alone.seconds > 0 else None,
        server_seconds=max((use.busy_seconds for use in uses if use.log == log), default=None),
        slowest=slowest.get(log),
    )


def _blamed(
    each: Disturbance, disturbances: Sequence[Disturbance], runs: Sequence[DisturbedRun]
) -> Disturbance:
    """Add the blame, if this is at the slowest server of the disturbed log."""
    [run] = [run for run in runs if run.log == each.log]
    if each.server != run.slowest:
        return each
    total = sum(
        other.by_bytes
        for other in disturbances
        if (other.log, other.server) == (each.log, each.server)
    )
    blame, lost = each.by_bytes / total, run.lost_seconds
    return replace(
        each, blame=blame, blamed_seconds=None if lost is None else max(lost, 0.0) * blame
    )


def _bottlenecks(uses: Sequence[ServerUse]) -> tuple[Server, ...]:
    """Find the server of each kind with most bytes of several applications in common time."""
    moved: dict[Server, float] = {}
    for use in uses:
        moved[use.server] = moved.get(use.server, 0.0) + use.common_bytes
    kinds = sorted({server.kind for server, value in moved.items() if value})
    return tuple(
        max(
            (server for server in sorted(moved) if server.kind == kind),
            key=lambda server: moved[server],
        )
        for kind in kinds
    )


def _moves(
    disturbances: Sequence[Disturbance],
    uses: Sequence[ServerUse],
    alone: Mapping[str, TimeAlone],
) -> Iterator[Move]:
    """Yield for each two logs the cheaper way to share no server of a kind."""
    shared: dict[tuple[str, str, str], set[int]] = {}
    for each in disturbances:
        if each.log < each.by:
            pair = each.log, each.by, each.server.kind
            shared.setdefault(pair, set()).add(each.server.number)
    for (log, other, kind), left in shared.items():
        used = {
            each: {use.server.number for use in uses if (use.log, use.server.kind) == (each, kind)}
            for each in (log, other)
        }
        moved = min((log, other), key=lambda each: len(left) / len(used[each]))
        kept = used[moved] - left
        cost = len(used[moved]) / len(kept) - 1 if kept and kind == "OST" else None
        known = alone.get(moved)
        yield Move(
            *(moved, other if moved == log else log, kind),
            left=tuple(sorted(left)),
            kept=tuple(sorted(kept)),
            cost=cost,
            cost_seconds=None if cost is None or known is None else cost * known.seconds,
        )
