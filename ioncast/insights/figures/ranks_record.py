"""The bytes, requests and seconds of each process of a run, for programs, in a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ioncast.insights.facts.rank_times import RankSeconds, rank_seconds
from ioncast.insights.facts.rank_totals import RankFacts
from ioncast.insights.facts.values import Facts, Floats, Ints, Layer

# More bars cannot be told apart.
MOST_RANGES = 256
# A page shows three digits. With two more, they are still right.
_DIGITS = 5


def ranks_record(
    facts: Facts, ranks: RankFacts | None, most_missing: float
) -> dict[str, Any] | None:
    """Describe the processes, in at most `MOST_RANGES` ranges of ranks, from `first_ranks` on.

    `values` has for each quantity its total, its largest value with the rank, and the `mean` in
    each range, with `min` and `max` if a range has several processes. At most `most_missing` of the
    time may be in reduced records. None if the log does not tell processes apart.
    """
    own = _seconds(facts, most_missing)
    found = [*_moved(ranks), *(own or _seconds_of_requests(ranks))]
    if not found:
        return None
    processes = max(facts.run.processes, 1)
    count = min(processes, MOST_RANGES)
    first = -(-np.arange(count, dtype=np.int64) * processes // count)
    return {
        "source": None if ranks is None else ranks.source,
        "processes": processes,
        "first_ranks": first.tolist(),
        "values": {
            name: _described(rank, values, first, processes) for name, rank, values in found
        },
    }


_Column = tuple[str, Ints, Floats]
"""A quantity, with ranks and their values; other ranks have zeros."""


def _moved(ranks: RankFacts | None) -> Iterator[_Column]:
    if ranks is None:
        return
    yield "bytes_read", ranks.rank, ranks.bytes_read
    yield "bytes_written", ranks.rank, ranks.bytes_written
    yield "bytes", ranks.rank, ranks.bytes
    if ranks.reads is not None and ranks.writes is not None:
        yield "requests", ranks.rank, ranks.reads + ranks.writes


def _seconds_of_requests(ranks: RankFacts | None) -> Iterator[_Column]:
    if ranks is not None and ranks.seconds is not None:
        yield "transfer_seconds", ranks.rank, ranks.seconds


def _seconds(facts: Facts, most_missing: float) -> list[_Column]:
    """Add up the time in records of single processes; nothing if reduced ones have too much."""
    layers = list(facts.layers.values())
    columns = read, write, metadata = [
        _at_highest(facts, [(layer, layer.reads.seconds) for layer in layers]),
        _at_highest(facts, [(layer, layer.writes.seconds) for layer in layers]),
        _at_highest(facts, [(layer, layer.metadata_seconds) for layer in layers]),
    ]
    reduced = sum(column.reduced_seconds for column in columns)
    total = sum(column.total_seconds for column in columns)
    if not len(read.rank) or reduced > most_missing * total:
        return []
    return [
        ("read_seconds", read.rank, read.seconds),
        ("write_seconds", write.rank, write.seconds),
        ("metadata_seconds", metadata.rank, metadata.seconds),
        ("io_seconds", read.rank, read.seconds + write.seconds + metadata.seconds),
    ]


def _at_highest(facts: Facts, values: Iterable[tuple[Layer, Floats]]) -> RankSeconds:
    return rank_seconds((layer, of_rows * facts.files.highest(layer)) for layer, of_rows in values)


def _described(rank: Ints, values: Floats, first: Ints, processes: int) -> dict[str, Any]:
    # A hostile log may name processes that the run does not have.
    exists = (rank >= 0) & (rank < processes)
    rank, values = rank[exists], values[exists]
    largest = int(np.argmax(values)) if len(values) else None
    return {
        "total": float(values.sum()),
        "largest": 0.0 if largest is None else _rounded(float(values[largest])),
        "largest_rank": 0 if largest is None else int(rank[largest]),
        **_in_ranges(rank, values, first, processes),
    }


def _in_ranges(rank: Ints, values: Floats, first: Ints, processes: int) -> dict[str, list[float]]:
    place = np.searchsorted(first, rank, side="right") - 1
    sizes = np.diff(first, append=processes)
    mean = np.bincount(place, values, len(first)) / sizes
    if processes == len(first):
        return {"mean": _all_rounded(mean)}
    least, most = np.full(len(first), np.inf), np.zeros(len(first))
    np.minimum.at(least, place, values)
    np.maximum.at(most, place, values)
    # A process without an entry did nothing.
    least[np.bincount(place, minlength=len(first)) < sizes] = 0.0
    return {
        "mean": _all_rounded(mean),
        "min": _all_rounded(least),
        "max": _all_rounded(most),
    }


def _all_rounded(values: Floats) -> list[float]:
    return [_rounded(value) for value in values.tolist()]


def _rounded(value: float) -> float:
    """Keep few digits, and all digits before the point, as pages show them."""
    if value < 10**_DIGITS:
        return float(f"{value:.{_DIGITS}g}")
    return float(np.rint(value))
