"""Servers that others kept busy while a run read or wrote its files.

Source: Harrington, steps 7 and 8. A test is of a file and a period, and not of each server: with 24
OSTs one of 24 tests would find a busy server by chance in 71 % of cases. The servers are the OSTs
of a file, or the I/O nodes of the compute nodes that accessed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import ceil
from statistics import median
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ioncast.warehouse.engine import Ask
from ioncast.warehouse.interference import bytes_by_time, server_uses
from ioncast.warehouse.queries import query_of, text_query
from ioncast_base.kinds import OPERATIONS

Floats = NDArray[np.float64]
Row = Mapping[str, Any]
Kind = Literal["OST", "ION"]
Reason = Literal[
    "no samples",
    "too coarse",
    "own bytes too large",
    "too few windows",
    "clock",
    "servers not known",
    "too small",
]
# Shares of servers, by log, file and operation.
_Shares = dict[tuple[str, str, str], dict[int, float]]
_MIB, _US = 1 << 20, 1_000_000
_DAY_US = 86_400 * _US
_WEEK_US = 7 * _DAY_US
# Periods below this share of the run's I/O time cannot explain a slow run.
_LEAST_SHARE = 0.01
_FEWEST_SAMPLES, _FEWEST_SAMPLES_WITHOUT_CLOCK = 2, 4
_FEWEST_WINDOWS, _QUANTILE, _LEAST_OF_PEAK = 20, 0.95, 0.1
_LEAST_COVERED, _MOST_COVERAGE, _SURE_COVERAGE = 0.8, 1.1, 0.8
_MOST_SHIFT_S, _RUNS_OF_CLOCK, _FEWEST_RUNS_OF_CLOCK = 15, 20, 10
_MOST_KEPT_SHIFTS = 100_000
# A window ends up to two samples after the last request.
_MARGIN_US = 900 * _US
# A run of days has too many seconds to correlate.
_MOST_CORRELATED_S = 86_400
_NAMED_SHARE = 0.5


@dataclass(frozen=True)
class ServerEvidence:
    """Whether others kept a server of a file busy in the period of an operation.

    Attributes
    ----------
    file : str
        The id in the table `files`.
    operation : str
        The operation whose first and last request begin and end the period.
    start_us, end_us : int
        The period, in microseconds of UTC.
    seconds : float
        The I/O time of the slowest process in this period.
    answer : str
        "unknown" has a `reason`.
    reason : str, optional
        "clock" stands for a coverage that no clock, file or cache explains otherwise.
    server : int, optional
        The OST or I/O node where others moved most.
    others_mib_s, usual_mib_s : float, optional
        The bandwidth of others there, and the bandwidth that the busiest of these servers exceeds
        in 5 % of windows of the week before.
    coverage : float, optional
        The run's own bytes beside all bytes that the servers moved.
    by : tuple of str
        Logs of the store that explain at least half of the others' bytes.
    clock_ahead_seconds : int, optional
        The seconds by which the clock of servers is ahead, as far as the test corrects it: 0 within
        a sample. It is None if too few runs tell.
    server_kind : str
        The kind of servers that were tested: "OST", or "ION" for I/O nodes.
    """

    file: str
    operation: Literal["read", "write"]
    start_us: int
    end_us: int
    seconds: float
    answer: Literal["busy", "not busy", "unknown"]
    reason: Reason | None = None
    server: int | None = None
    others_mib_s: float | None = None
    usual_mib_s: float | None = None
    coverage: float | None = None
    by: tuple[str, ...] = ()
    clock_ahead_seconds: int | None = None
    server_kind: Kind = "OST"


EvidenceOf = Callable[[str], Sequence[ServerEvidence]]
"""Finds the evidence of servers about the log with a SHA-256."""


class RunAtServers(NamedTuple):
    """A run's periods with the shares of servers, its job's own bytes, and samples, by server.

    Requests and samples are starts, ends and bytes, shape (3, n). `io_nodes` has the I/O node of
    each compute node.
    """

    log: str
    kind: Kind
    io_nodes: Mapping[str, int]
    periods: Sequence[Row]
    requests: Mapping[int, Floats]
    samples: Mapping[int, Floats]

    @property
    def step_us(self) -> float:
        """The usual length of a sample."""
        return float(
            np.median(np.concatenate([each[1] - each[0] for each in self.samples.values()]))
        )


def no_evidence(_: str) -> Sequence[ServerEvidence]:
    """Stand for servers without logs."""
    return ()


def evidence_of_store(
    ask: Ask, near_us: int | None = None, io_nodes: Mapping[str, int] = MappingProxyType({})
) -> EvidenceOf:
    """Make an `evidence_finder` if a store has samples of servers.

    Only those within a day of a time count, if it is given.
    """
    # The view `server_samples` would group the samples of all times.
    text, values = "select kind from raw_server_samples", {}
    if near_us is not None:
        text += " where time_end_us > :from_us and time_start_us < :to_us"
        values = {"from_us": near_us - _DAY_US, "to_us": near_us + _DAY_US}
    found = ask(text_query(f"{text} limit 1"), values)
    return evidence_finder(ask, io_nodes) if len(found) else no_evidence


def evidence_finder(
    ask: Ask, io_nodes: Mapping[str, int] = MappingProxyType({})
) -> Callable[[str], list[ServerEvidence]]:
    """Make a function that tests for each file and period of a log if others kept a server busy.

    Its parameter is the SHA-256 of a log. The runs near one log are near the next one too, so it
    keeps how far their bytes are shifted.

    Parameters
    ----------
    ask : callable
        Asks a store with the logs and with samples.
    io_nodes : mapping of str to int, optional
        The number of the I/O node of each compute node. The test is then about I/O nodes, if all
        logs of the job have traces that name its compute nodes, and if there are samples of I/O
        nodes.
    """

    @lru_cache(_MOST_KEPT_SHIFTS)
    def shift_of(log: str, kind: Kind) -> int | None:
        run = run_at_servers(ask, log, kind, io_nodes)
        return None if run is None else _shift_s(run)

    def evidence_of(log: str) -> list[ServerEvidence]:
        kinds: tuple[Kind, ...] = ("ION", "OST") if io_nodes else ("OST",)
        of_kinds = (run_at_servers(ask, log, kind, io_nodes) for kind in kinds)
        runs = [run for run in of_kinds if run is not None]
        if not runs:
            return []
        run = next((each for each in runs if each.samples), runs[0])
        shift = _shift_s(run)
        ahead = _clock_ahead_s(
            ask, run, lambda near: shift if near == log else shift_of(near, run.kind)
        )
        least_seconds = _LEAST_SHARE * sum(row["seconds"] for row in run.periods)
        return [_evidence(ask, run, row, ahead, shift, least_seconds) for row in run.periods]

    return evidence_of


def _clock_ahead_s(
    ask: Ask, run: RunAtServers, shift_of: Callable[[str], int | None]
) -> int | None:
    """Find by how much the clock of servers is ahead, from runs of the week around a run.

    It is the median over at least 10 runs of the shift with the best correlation of a run's own
    bytes and those of servers, if it is more than a sample; else 0. None if too few runs tell.
    """
    if not run.samples:
        return None
    job = {name: run.periods[0][name] for name in ("system", "start_us")}
    near = ask(query_of("runs-near"), {**job, "kind": run.kind, "limit": _RUNS_OF_CLOCK})
    shifts = [shift for log in near["log"].to_pylist() if (shift := shift_of(log)) is not None]
    if len(shifts) < _FEWEST_RUNS_OF_CLOCK:
        return None
    shift = round(median(shifts))
    return shift if abs(shift) * _US > run.step_us else 0


def _listed(servers: Iterable[int]) -> str:
    """Write numbers of servers as the queries want them."""
    return f",{','.join(map(str, servers))},"


def run_at_servers(
    ask: Ask,
    log: str,
    kind: Kind = "OST",
    io_nodes: Mapping[str, int] = MappingProxyType({}),
) -> RunAtServers | None:
    """Ask for all that a store knows of a run's periods and servers of a kind.

    None without periods, or if the I/O nodes are not known.
    """
    of_job = [
        {
            **row,
            "start": round(row["start_us"] + row["first_seconds"] * _US),
            "end": _end_us(row),
        }
        for row in ask(query_of("file-periods"), {"log": log}).to_pylist()
    ]
    if kind == "ION" and not all(row["has_requests"] for row in of_job):
        return None
    moved = _at_io_nodes(ask, log, io_nodes) if kind == "ION" else None
    shares = _ost_shares(ask, log) if moved is None else _shares_of(moved)
    for row in of_job:
        row["shares"] = shares.get((row["log"], row["file"], row["operation"]), {})
    periods = [row for row in of_job if row["log"] == log]
    if not periods or (moved is not None and not shares):
        return None
    values = {
        "kind": kind,
        "servers": _listed({server for row in periods for server in row["shares"]}),
        "system": periods[0]["system"] or "",
        "from_us": min(row["start"] for row in periods) - _MARGIN_US,
        "to_us": max(row["end"] for row in periods) + _MARGIN_US,
    }
    samples = ask(query_of("server-samples"), values)
    requests = _requests(ask, of_job) if moved is None else _by_server(moved, "start_us", "end_us")
    by_server = _by_server(samples, "time_start_us", "time_end_us")
    return RunAtServers(log, kind, io_nodes, periods, requests, by_server)


def _ost_shares(ask: Ask, log: str) -> _Shares:
    """Find the share of each OST of the files of a job, for both operations."""
    shares: _Shares = {}
    for row in ask(query_of("file-osts"), {"log": log}).to_pylist():
        for operation in OPERATIONS:
            key = row["log"], row["file"], operation
            shares.setdefault(key, {})[row["server"]] = row["share"]
    return shares


def _at_io_nodes(ask: Ask, log: str, io_nodes: Mapping[str, int]) -> pa.Table:
    """Find the traced requests of a job at I/O nodes, with these as the column `server`."""
    requests = ask(query_of("node-requests"), {"log": log})
    node = pc.dictionary_encode(requests["node"]).combine_chunks()
    server = pa.array([io_nodes.get(name) for name in node.dictionary.to_pylist()], pa.int64())
    requests = requests.append_column("server", server.take(node.indices))
    # Darshan's clock has microseconds, so that short requests have no length.
    ends = pc.max_element_wise(requests["end_us"], pc.add(requests["start_us"], 1.0))
    requests = requests.set_column(requests.column_names.index("end_us"), "end_us", ends)
    return requests.filter(pc.is_valid(requests["server"]))


def _shares_of(moved: pa.Table) -> _Shares:
    """Add up the bytes of requests at each server, as shares of the bytes of file and operation."""
    keys = ["log", "file", "operation", "server"]
    sums: _Shares = {}
    for row in moved.group_by(keys).aggregate([("bytes", "sum")]).to_pylist():
        key = row["log"], row["file"], row["operation"]
        sums.setdefault(key, {})[row["server"]] = row["bytes_sum"]
    return {
        key: {server: moved / sum(of_file.values()) for server, moved in of_file.items()}
        for key, of_file in sums.items()
    }


def _requests(ask: Ask, of_job: Sequence[Row]) -> dict[int, Floats]:
    """Find the requests of a job at each OST: of each log's trace, else spread over periods."""
    found: dict[int, list[Floats]] = {}
    for log, of_log in groupby(of_job, lambda row: str(row["log"])):
        periods = list(of_log)
        traced = _traced(ask, log, periods[0]["start_us"]) if periods[0]["has_requests"] else {}
        for server, requests in (traced or _spread(periods)).items():
            found.setdefault(server, []).append(requests)
    return {server: np.hstack(requests) for server, requests in found.items()}


def _end_us(row: Row) -> int:
    # Darshan 3.4.0 and older note whole seconds of the start.
    late_us = 0 if row["start_us"] % _US else _US
    return int(row["start_us"] + row["last_seconds"] * _US) + late_us


def _by_server(intervals: pa.Table, start: str, end: str) -> dict[int, Floats]:
    """Separate intervals, with their starts, ends and bytes, by server."""
    servers = intervals["server"].to_numpy()
    names = (start, end, "bytes")
    values = np.array([intervals[name].to_numpy().astype(np.float64) for name in names])
    return {int(server): values[:, servers == server] for server in np.unique(servers)}


def _traced(ask: Ask, log: str, start_us: int) -> dict[int, Floats]:
    """Find the requests of a trace at each OST; nothing if the store has no trace of the log."""
    job = {"log": log, "start_us": start_us, "system": None}
    uses = server_uses([job], ask(query_of("server-uses"), {"log": log}))
    return {
        use.server.number: use.requests
        for use in uses
        if use.server.kind == "OST" and not use.is_estimated
    }


def _spread(periods: Sequence[Row]) -> dict[int, Floats]:
    """Spread the bytes of files evenly over their periods."""
    found: dict[int, list[tuple[float, float, float]]] = {}
    for row in periods:
        for server, share in row["shares"].items():
            use = row["start"], max(row["end"], row["start"] + 1), row["bytes"] * share
            found.setdefault(server, []).append(use)
    return {server: np.array(uses, np.float64).T for server, uses in found.items()}


def _near(intervals: Floats | None, start_us: float, end_us: float) -> Floats:
    """Select the intervals of a server that are at least partly in a time."""
    if intervals is None:
        return np.empty((3, 0))
    return intervals[:, (intervals[1] > start_us) & (intervals[0] < end_us)]


def _moved(intervals: Floats | None, start_us: float, end_us: float) -> tuple[float, float]:
    """Add up bytes in a time, and the microseconds of it that intervals cover."""
    near = _near(intervals, start_us, end_us)
    covered = np.minimum(near[1], end_us) - np.maximum(near[0], start_us)
    return float(bytes_by_time(near, (start_us, end_us))[0]), float(covered.sum())


def _shift_s(run: RunAtServers) -> int | None:
    """Find the shift of the servers' bytes behind the run's own; None if others moved too much."""
    start = min(row["start"] for row in run.periods) - _MOST_SHIFT_S * _US
    seconds = (max(row["end"] for row in run.periods) - start) // _US + 2 * _MOST_SHIFT_S
    if not run.samples or seconds > _MOST_CORRELATED_S:
        return None
    edges = start + np.arange(seconds + 1) * _US
    servers = run.samples.keys() & run.requests.keys()
    own = sum((_binned(run.requests[each], edges) for each in servers), np.zeros(seconds))
    moved = sum((_binned(run.samples[each], edges) for each in servers), np.zeros(seconds))
    if not moved.sum() or own.sum() / moved.sum() <= _SURE_COVERAGE:
        return None
    own, moved = own - own.mean(), moved - moved.mean()
    shifts = range(-_MOST_SHIFT_S, _MOST_SHIFT_S + 1)
    matches = [(float(own @ np.roll(moved, -each)), -abs(each), each) for each in shifts]
    return max(matches)[2]


def _binned(intervals: Floats, edges_us: NDArray[np.int64]) -> Floats:
    """Add up the bytes of each second."""
    starts, ends, moved = intervals
    rates = moved / (ends - starts)
    # The bytes until a time grow linearly in each interval, so sums at all its ends tell them.
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")
    slopes = np.cumsum(np.concatenate((rates, -rates))[order])
    sums = np.append(0.0, np.cumsum(slopes[:-1] * np.diff(times[order])))
    return np.diff(np.interp(edges_us, times[order], sums))


def _evidence(
    ask: Ask,
    run: RunAtServers,
    row: Row,
    ahead_s: int | None,
    own_shift_s: int | None,
    least_seconds: float,
) -> ServerEvidence:
    found = ServerEvidence(
        *(row["file"], row["operation"], row["start"], row["end"], row["seconds"]),
        answer="unknown",
        clock_ahead_seconds=ahead_s,
        server_kind=run.kind,
    )
    servers = row["shares"]
    if row["seconds"] < least_seconds:
        return replace(found, reason="too small")
    if not servers:
        return replace(found, reason="servers not known")
    shift_us = (ahead_s or 0) * _US
    times = row["start"] + shift_us, row["end"] + shift_us
    near = np.hstack([_near(run.samples.get(server), *times) for server in servers])
    if not near.size:
        return replace(found, reason="no samples")
    step_us = round(np.median(near[1] - near[0]))
    samples = (row["last_seconds"] - row["first_seconds"]) * _US / step_us
    if samples < _FEWEST_SAMPLES:
        return replace(found, reason="too coarse")
    is_shifted = ahead_s is None and abs(own_shift_s or 0) * _US > step_us
    if is_shifted and samples < _FEWEST_SAMPLES_WITHOUT_CLOCK:
        return replace(found, reason="clock")
    # Only whole samples have all own bytes, and clients write their caches late.
    start_us = max(int(near[0].min()), times[0] - step_us) - shift_us
    end_us = min(int(near[1].max()), times[1] + step_us) - shift_us
    end_us += step_us if row["operation"] == "write" else 0
    return _tested(ask, run, found, tuple(servers), (start_us, end_us), shift_us)


def _tested(
    ask: Ask,
    run: RunAtServers,
    found: ServerEvidence,
    servers: Sequence[int],
    window_us: tuple[int, int],
    shift_us: int,
) -> ServerEvidence:
    """Compare the others' bytes in a window with those of windows before it."""
    start_us, end_us = window_us
    length_us = end_us - start_us
    others: dict[int, float] = {}
    own: dict[int, float] = {}
    moved = covered_us = 0.0
    for server in servers:
        bytes_, covered = _moved(run.samples.get(server), start_us + shift_us, end_us + shift_us)
        if not covered:
            continue
        own[server] = _moved(run.requests.get(server), start_us, end_us)[0]
        all_bytes = bytes_ * length_us / covered
        others[server] = max(all_bytes - own[server], 0.0)
        moved, covered_us = moved + all_bytes, covered_us + min(covered, length_us)
    server = max(others, key=lambda each: (others[each], -each))
    total_own = sum(own.values())
    mib_s = others[server] / _MIB / length_us * _US
    # Servers without samples cannot be the busiest one, neither in the period nor in windows.
    usual_mib_s = _usual_mib_s(ask, run, tuple(others), length_us, start_us + shift_us, shift_us)
    coverage = total_own / moved if moved else None
    found = replace(
        found, server=server, others_mib_s=mib_s, usual_mib_s=usual_mib_s, coverage=coverage
    )
    is_busy = (
        usual_mib_s is not None
        and mib_s > usual_mib_s
        and mib_s >= _LEAST_OF_PEAK * _peak_mib_s(ask, run, server, start_us + shift_us)
    )
    # Own bytes may have come earlier or later than the run's clock says, so fewer bytes of others
    # tell nothing. If own bytes are nearly all, they are surely among the samples.
    is_hidden = 0 < own[server] >= others[server]
    reason: Reason | None = None
    if total_own > _MOST_COVERAGE * moved:
        reason = "clock"
    elif usual_mib_s is None:
        reason = "too few windows"
    elif is_hidden and (is_busy or (coverage or 0.0) < _SURE_COVERAGE):
        reason = "own bytes too large"
    elif not is_busy and covered_us < _LEAST_COVERED * length_us * len(servers):
        reason = "no samples"
    if reason is not None:
        return replace(found, reason=reason)
    if not is_busy:
        return replace(found, answer="not busy")
    by = _named(ask, run, server, window_us, others[server])
    return replace(found, answer="busy", by=by)


def _peak_mib_s(ask: Ask, run: RunAtServers, server: int, to_us: int) -> float:
    """Find the bandwidth that a server exceeds in a thousandth of its samples of a week."""
    values = {"kind": run.kind, "server": str(server), "system": run.periods[0]["system"]}
    week = {"from_us": to_us - _WEEK_US, "to_us": to_us}
    [peak] = ask(query_of("server-peak"), {**values, **week})["peak_mib_s"].to_pylist()
    return float(peak or 0.0)


def _usual_mib_s(
    ask: Ask, run: RunAtServers, servers: Sequence[int], length_us: int, to_us: int, shift_us: int
) -> float | None:
    """Find the 95 % quantile of windows before a time; None with too few of them."""
    times = {"from_us": to_us - _WEEK_US, "to_us": to_us}
    values = {"kind": run.kind, "servers": _listed(servers), "system": run.periods[0]["system"]}
    windows = ask(query_of("server-windows"), {**values, **times, "length_us": length_us})
    least_us = _LEAST_COVERED * length_us * len(servers)
    windows = windows.filter(pc.greater_equal(windows["covered_us"], least_us))
    busy = ask(query_of("program-times"), {"log": run.log, **times})
    numbers = windows["number"].to_numpy()
    ends = to_us - numbers * length_us
    is_alone = np.ones(len(numbers), bool)
    for start, end in zip(
        *(busy[name].to_pylist() for name in ("start_us", "end_us")), strict=True
    ):
        is_alone &= (end + shift_us <= ends - length_us) | (start + shift_us >= ends)
    mib_s = np.sort(windows["most_mib_s"].to_numpy()[is_alone])
    if len(mib_s) < _FEWEST_WINDOWS:
        return None
    # Of n + 1 equal windows, this one is above the quantile in at most 5 % of cases.
    return float(mib_s[min(ceil(_QUANTILE * (len(mib_s) + 1)), len(mib_s)) - 1])


def _named(
    ask: Ask, run: RunAtServers, server: int, period: tuple[int, int], others_bytes: float
) -> tuple[str, ...]:
    """Name the fewest logs that explain half of the others' bytes; none if all do not."""
    values: dict[str, Any] = {"log": run.log, "system": run.periods[0]["system"]}
    values |= {"from_us": period[0], "to_us": period[1]}
    moved: Counter[str] = Counter()
    if run.kind == "OST":
        for row in ask(query_of("server-users"), {**values, "server": server}).to_pylist():
            moved[row["log"]] += row["bytes"]
    else:
        for row in ask(query_of("node-users"), values).to_pylist():
            if run.io_nodes.get(row["node"]) == server:
                moved[row["log"]] += row["bytes"]
    named: list[str] = []
    explained = 0.0
    for log, of_log in moved.most_common():
        named.append(log)
        explained += of_log
        if explained >= _NAMED_SHARE * others_bytes:
            return tuple(named)
    return ()
