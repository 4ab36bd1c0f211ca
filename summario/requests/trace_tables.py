"""Trace phases as CSV, JSON and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import size
from summario.phases import streamed
from summario.requests.of_log import TracePhaseOfLog
from summario.requests.trace_phases import RankSums

COLUMNS = (
    "job",
    "start",
    "end",
    "type",
    "api",
    "bytes",
    "requests",
    "processes",
    "nprocs",
    "slowest_rank",
    "slowest_end",
    "slowest_time",
    "fastest_rank",
    "fastest_end",
    "fastest_time",
    "lateness",
    "stragglers",
    "log",
)
_SHOWN_RANKS = 4


def stream_csv(batches: Iterable[Iterable[TracePhaseOfLog]]) -> Iterator[str]:
    """Yield CSV in pieces; ranks of stragglers are joined by semicolons."""
    return streamed.stream_csv(COLUMNS, (map(_row, phases) for phases in batches))


def stream_json(batches: Iterable[Iterable[TracePhaseOfLog]]) -> Iterator[str]:
    """Yield a JSON list in pieces; each phase also has the sums of its ranks."""
    return streamed.stream_json(map(to_record, phases) for phases in batches)


def to_text(phases: Iterable[TracePhaseOfLog]) -> str:
    """Write phases as a table for people; it names the logs if there are several."""
    phases = list(phases)
    several = len({found.log for found in phases}) > 1
    rows = [
        {
            "phase": index,
            **({"log": visible(Path(found.log).name)} if several else {}),
            "start s": f"{record['start']:.2f}",
            "end s": f"{record['end']:.2f}",
            "type": record["type"],
            "api": record["api"],
            "size": size(record["bytes"]),
            "requests": record["requests"],
            "ranks": record["processes"],
            "slowest rank": record["slowest_rank"],
            "fastest rank": record["fastest_rank"],
            "apart s": f"{record['slowest_end'] - record['fastest_end']:.2f}",
            "stragglers": _some(record["stragglers"]),
        }
        for index, found in enumerate(phases)
        for record in [to_record(found)]
    ]
    return (
        text_table(rows, optional=["api", "requests", "fastest rank", "apart s"])
        if rows
        else "no trace phases"
    )


def _some(ranks: list[int]) -> str:
    """Write the first ranks, and how many more there are."""
    shown = ", ".join(map(str, ranks[:_SHOWN_RANKS])) or "none"
    more = len(ranks) - _SHOWN_RANKS
    return f"{shown} and {more} more" if more > 0 else shown


def to_record(found: TracePhaseOfLog) -> dict[str, Any]:
    """Convert a phase to a record with the names of columns, and the sums of its ranks."""
    phase = found.phase
    ranks = _rank_records(phase.ranks)
    of_rank = {record["rank"]: record for record in ranks}
    slowest, fastest = of_rank[phase.slowest_rank], of_rank[phase.fastest_rank]
    return {
        "job": found.job,
        "start": phase.start_seconds,
        "end": phase.end_seconds,
        "type": phase.operation,
        "api": phase.api,
        "bytes": phase.bytes,
        "requests": phase.requests,
        "processes": len(ranks),
        "nprocs": found.nprocs,
        **{f"slowest_{name}": slowest[name] for name in ("rank", "end", "time")},
        **{f"fastest_{name}": fastest[name] for name in ("rank", "end", "time")},
        "lateness": phase.lateness,
        "stragglers": list(phase.stragglers),
        "log": found.log,
        "ranks": ranks,
    }


def _row(found: TracePhaseOfLog) -> dict[str, Any]:
    record = to_record(found)
    del record["ranks"]
    return {**record, "stragglers": ";".join(map(str, record["stragglers"]))}


def _rank_records(ranks: RankSums) -> list[dict[str, Any]]:
    columns = {
        "rank": ranks.rank,
        "requests": ranks.requests,
        "bytes": ranks.bytes,
        "time": ranks.busy_seconds,
        "end": ranks.end_seconds,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
