"""How unequally the processes of shared files took part in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.values import FileFacts, Floats, Ints, Layer
from ioncast_base.kinds import Operation
from ioncast_base.limits import LONGEST_SECONDS


@dataclass(frozen=True)
class Extreme:
    """A process of each shared file, its bytes, and its time in reads, writes and metadata."""

    rank: Ints
    bytes: Floats
    seconds: Floats


@dataclass(frozen=True)
class SharedFiles:
    """The files that several processes used, at the highest layer of each.

    Darshan finds the slowest and the fastest process of a file whose records it reduces. Of other
    files they are those of the processes with a record. Bytes and seconds are those of all these.
    """

    file: Ints
    processes: Ints
    bytes: Floats
    seconds: Floats
    slowest: Extreme
    fastest: Extreme


def shared_files_of(facts: FileFacts) -> SharedFiles:
    """Find the slowest and the fastest process of each file that several processes used."""
    found = [
        table
        for layer in facts.layers.values()
        for table in (_of_reduced(facts, layer), _of_single(facts, layer))
    ]
    return SharedFiles(
        file=_stacked([table.file for table in found]),
        processes=_stacked([table.processes for table in found]),
        bytes=_joined([table.bytes for table in found]),
        seconds=_joined([table.seconds for table in found]),
        slowest=_extremes([table.slowest for table in found]),
        fastest=_extremes([table.fastest for table in found]),
    )


def bytes_of_single_ranks(
    facts: FileFacts, operation: Operation
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield by layer the files with several processes' records, their most and fewest bytes."""
    for layer in facts.layers.values():
        rows, first = _single_ranks(facts, layer, layer.rank)
        if len(rows):
            moved = layer.of(operation).bytes[rows]
            most, fewest = (each.reduceat(moved, first) for each in (np.maximum, np.minimum))
            yield layer.file[rows][first], most, fewest


def _of_reduced(facts: FileFacts, layer: Layer) -> SharedFiles:
    shared = facts.files.highest(layer) & layer.is_reduced & (layer.processes > 1)
    rows = np.flatnonzero(shared)
    return SharedFiles(
        file=layer.file[rows],
        processes=layer.processes[rows],
        bytes=_bytes(layer)[rows],
        seconds=_seconds(layer)[rows],
        slowest=_told(layer, rows, "SLOWEST"),
        fastest=_told(layer, rows, "FASTEST"),
    )


def _told(layer: Layer, rows: Ints, name: str) -> Extreme:
    """Take a process that Darshan found."""
    seconds = np.clip(layer.seconds(f"F_{name}_RANK_TIME"), 0, LONGEST_SECONDS)
    return Extreme(
        rank=(layer.first_rank + layer.count(f"{name}_RANK"))[rows],
        bytes=layer.count(f"{name}_RANK_BYTES")[rows].astype(np.float64),
        seconds=seconds[rows],
    )


def _of_single(facts: FileFacts, layer: Layer) -> SharedFiles:
    seconds, moved = _seconds(layer), _bytes(layer)
    rows, first = _single_ranks(facts, layer, seconds)
    end = np.append(first[1:], len(rows))[: len(first)]
    fastest, slowest = rows[first], rows[end - 1]
    return SharedFiles(
        file=layer.file[fastest],
        processes=end - first,
        bytes=_sums(moved[rows], first),
        seconds=_sums(seconds[rows], first),
        slowest=Extreme(layer.rank[slowest], moved[slowest], seconds[slowest]),
        fastest=Extreme(layer.rank[fastest], moved[fastest], seconds[fastest]),
    )


def _sums(values: Floats, first: Ints) -> Floats:
    sums: Floats = np.add.reduceat(values, first) if len(values) else values
    return sums


def _single_ranks(facts: FileFacts, layer: Layer, by: Ints | Floats) -> tuple[Ints, Ints]:
    """Sort the records of single processes by file, and leave out files with one of them."""
    is_single = facts.files.highest(layer) & ~layer.is_reduced
    several = np.zeros(len(facts.files), bool)
    several[layer.used_files] = layer.of_files(is_single.astype(np.int64)) > 1
    rows = np.flatnonzero(is_single & several[layer.file])
    rows = rows[np.lexsort((by[rows], layer.file[rows]))]
    return rows, np.flatnonzero(np.diff(layer.file[rows], prepend=-1))


def _bytes(layer: Layer) -> Floats:
    return (layer.reads.bytes + layer.writes.bytes).astype(np.float64)


def _seconds(layer: Layer) -> Floats:
    together = layer.reads.seconds + layer.writes.seconds + layer.metadata_seconds
    # Of hostile numbers the sum could be infinite.
    limited: Floats = np.minimum(together, LONGEST_SECONDS * layer.processes)
    return limited


def _extremes(tables: Iterable[Extreme]) -> Extreme:
    tables = list(tables)
    return Extreme(
        rank=_stacked([table.rank for table in tables]),
        bytes=_joined([table.bytes for table in tables]),
        seconds=_joined([table.seconds for table in tables]),
    )


def _stacked(arrays: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _joined(arrays: list[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *arrays])
