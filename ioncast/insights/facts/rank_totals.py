"""The requests, bytes and seconds of each process, from the best source that a log has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Facts, Floats, Ints
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.limits import LONGEST_SECONDS
from summario.reading.dxt import DXT_MODULES

RankSource = Literal["trace", "heat map", "records"]


@dataclass(frozen=True)
class RankFacts:
    """The processes that moved bytes, in ascending order; the others count as zeros.

    Each file counts once, at its highest layer. `source` is "trace" (DXT), "heat map" (bytes only)
    or "records" (of single processes). Numbers of requests and seconds are None if it lacks them.
    """

    source: RankSource
    processes: int
    rank: Ints
    reads: Floats | None
    writes: Floats | None
    bytes_read: Floats
    bytes_written: Floats
    seconds: Floats | None

    @property
    def bytes(self) -> Floats:
        """All moved bytes of each process."""
        return self.bytes_read + self.bytes_written


def ranks_of(facts: Facts, most_missing: float = 0.1) -> RankFacts | None:
    """Add up what each process did, by trace, else heat maps, else records of single processes.

    A source counts if it has the bytes of the run's files, and no others, but for a small share.
    The result is None without moved bytes or such a source.
    """
    if not facts.files.bytes.sum(dtype=np.float64):
        return None
    found = _of_trace(facts, most_missing) or _of_heatmaps(facts, most_missing)
    return found or _of_records(facts, most_missing)


def _of_trace(facts: Facts, most_missing: float) -> RankFacts | None:
    trace = facts.trace
    if trace is None or facts.run.is_partial(*DXT_MODULES.values()):
        return None
    is_highest = facts.files.api[np.searchsorted(facts.files.id, trace.file_id)] == trace.api
    traced = trace.length[is_highest].sum(dtype=np.float64)
    if traced < (1 - most_missing) * facts.files.bytes.sum(dtype=np.float64):
        return None
    if not is_highest.all():
        trace = trace.take(is_highest)
    is_read = trace.operation == OPERATIONS.index("read")
    return _added(
        "trace",
        facts,
        trace.rank,
        reads=is_read,
        writes=~is_read,
        bytes_read=trace.length * is_read,
        bytes_written=trace.length * ~is_read,
        seconds=trace.end_seconds - trace.start_seconds,
    )


def _of_heatmaps(facts: Facts, most_missing: float) -> RankFacts | None:
    rank, read, written, covered = [], [], [], 0.0
    for index, api in enumerate(APIS):
        own = facts.files.bytes[facts.files.api == index].sum(dtype=np.float64)
        if not own or (api, "read") not in facts.heatmaps:
            continue
        maps = [facts.heatmaps[api, operation] for operation in OPERATIONS]
        sums = [each.bytes.sum(axis=1).astype(np.float64) for each in maps]
        seen = sum(float(each.sum()) for each in sums)
        # A heat map also has the bytes of files with a higher layer, and of the system's files.
        if min(own, seen) >= (1 - most_missing) * max(own, seen):
            covered += own
            for heatmap, operation, moved in zip(maps, OPERATIONS, sums, strict=True):
                rank.append(heatmap.rank)
                read.append(moved * (operation == "read"))
                written.append(moved * (operation == "write"))
    if not rank or covered < (1 - most_missing) * facts.files.bytes.sum(dtype=np.float64):
        return None
    columns = {"bytes_read": np.concatenate(read), "bytes_written": np.concatenate(written)}
    return _added("heat map", facts, np.concatenate(rank), **columns)


def _of_records(facts: Facts, most_missing: float) -> RankFacts | None:
    columns: dict[str, list[NDArray[Any]]] = {}
    reduced = 0.0
    for layer in facts.layers.values():
        rows = facts.files.highest(layer)
        moved = (layer.reads.bytes + layer.writes.bytes)[rows & layer.is_reduced]
        reduced += float(moved.sum(dtype=np.float64))
        rows &= ~layer.is_reduced
        # Of hostile numbers the sum could be infinite.
        seconds = np.minimum(layer.reads.seconds + layer.writes.seconds, LONGEST_SECONDS)
        for name, values in (
            ("rank", layer.rank),
            ("reads", layer.reads.requests),
            ("writes", layer.writes.requests),
            ("bytes_read", layer.reads.bytes),
            ("bytes_written", layer.writes.bytes),
            ("seconds", seconds),
        ):
            columns.setdefault(name, []).append(values[rows])
    if reduced >= most_missing * facts.files.bytes.sum(dtype=np.float64):
        return None
    return _added("records", facts, **{name: np.concatenate(of) for name, of in columns.items()})


def _added(
    source: RankSource, facts: Facts, rank: Ints, **columns: NDArray[Any]
) -> RankFacts | None:
    """Add up the columns of each rank; None without any rank."""
    if not len(rank):
        return None
    order = np.argsort(rank, kind="stable")
    first = np.flatnonzero(np.diff(rank[order], prepend=-1))
    sums = {
        name: np.add.reduceat(values[order], first, dtype=np.float64)
        for name, values in columns.items()
    }
    return RankFacts(
        source=source,
        processes=facts.run.processes,
        rank=rank[order][first],
        reads=sums.get("reads"),
        writes=sums.get("writes"),
        bytes_read=sums["bytes_read"],
        bytes_written=sums["bytes_written"],
        seconds=sums.get("seconds"),
    )
