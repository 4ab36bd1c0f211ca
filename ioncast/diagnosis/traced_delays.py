"""Delays that a trace shows: trailing writes, and processes that end late again and again."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ioncast.warehouse.engine import Ask
from ioncast.warehouse.queries import query_of
from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.requests.trace_phases import TracePhases, trace_phases
from summario.requests.trailing import trailing_writes

_TRACED: tuple[Api, ...] = ("MPIIO", "POSIX")
# A straggler recurs if it ends late in so many phases, and in this part of all.
_FEWEST_PHASES, _SHARE_OF_PHASES = 2, 0.5
# More names of ranks tell a reader nothing.
_MOST_RANKS = 8


@dataclass(frozen=True)
class TracedDelays:
    """Seconds of trailing writes, and of waiting for recurring stragglers (`ranks`)."""

    trailing_seconds: float
    trailing_requests: int
    straggler_seconds: float
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class UsualDelays:
    """The median delays of some traced jobs that are not slow."""

    jobs: int
    trailing_seconds: float
    straggler_seconds: float


def delays_of_log(ask: Ask, log: str) -> TracedDelays:
    """Find the delays in the traced requests of a log."""
    return delays_of(ask(query_of("traced-requests"), {"log": log}))


def usual_delays(ask: Ask, logs: list[str]) -> UsualDelays | None:
    """Find the median delays of logs; None without any."""
    found = [delays_of_log(ask, log) for log in logs]
    if not found:
        return None
    return UsualDelays(
        len(found),
        median(each.trailing_seconds for each in found),
        median(each.straggler_seconds for each in found),
    )


def delays_of(requests: pa.Table) -> TracedDelays:
    """Find the delays in rows of the query `traced-requests`."""
    table = _operations(requests)
    trailing = trailing_writes(table)
    # Both layers see the same stragglers.
    late = [_recurring(trace_phases(table, api)) for api in _TRACED] if len(table) else []
    seconds, ranks = max(late, default=(0.0, ()))
    return TracedDelays(
        trailing.end_seconds - trailing.start_seconds if trailing else 0.0,
        trailing.requests if trailing else 0,
        seconds,
        ranks,
    )


def _recurring(phases: TracePhases) -> tuple[float, tuple[int, ...]]:
    """Add up the waiting in phases for processes that end late in many of them."""
    late = phases.is_straggler
    ranks, count = np.unique(phases.ranks.rank[late], return_counts=True)
    needed = max(_FEWEST_PHASES, _SHARE_OF_PHASES * len(phases))
    ranks = ranks[count >= needed]
    if not len(ranks):
        return 0.0, ()
    rows = np.flatnonzero(late & np.isin(phases.ranks.rank, ranks))
    phase = np.unique(np.searchsorted(phases.first_row, rows, side="right") - 1)
    seconds = float((phases.lateness * phases.durations_seconds)[phase].sum())
    return seconds, tuple(ranks[:_MOST_RANKS].tolist())


def _operations(requests: pa.Table) -> Operations:
    size = len(requests)
    codes = {
        name: pc.index_in(requests[name], pa.array(values)).to_numpy().astype(np.int8)
        for name, values in (("api", APIS), ("operation", OPERATIONS))
    }
    return Operations(
        **codes,
        file_id=np.zeros(size, np.uint64),
        rank=requests["rank"].to_numpy(),
        offset=np.full(size, UNKNOWN_OFFSET),
        length=requests["length_bytes"].to_numpy(),
        start_seconds=requests["start_seconds"].to_numpy(),
        end_seconds=requests["end_seconds"].to_numpy(),
        host=np.full(size, -1, np.int32),
    )
