"""The time that I/O takes of the slowest process, by file, layer and kind of call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ioncast.insights.facts.file_times import NO_RANK
from ioncast.insights.facts.rank_times import rank_seconds
from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, Layer
from ioncast_base.kinds import APIS, OPERATIONS, Api, Operation
from ioncast_base.limits import LONGEST_SECONDS

# The rows of all arrays here: the operations, and then the calls that move no bytes.
METADATA = len(OPERATIONS)
KINDS = (*OPERATIONS, "metadata")
# MPI-IO calls POSIX to open a file, and its own time contains waiting for other processes.
_METADATA_APIS = ("POSIX", "STDIO")


@dataclass(frozen=True)
class ProcessTimes:
    """Seconds of the slowest process, which sets the run time; each array has shape (3, files).

    The rows of the arrays are reads, writes and metadata (`KINDS`), the columns `Facts.files`. No
    process can wait for longer than the run takes, so longer times, for example of several
    threads, are scaled down to the run time (`run_seconds`; 0 if the log does not tell it).

    `rank` is the slowest process, if most of its time is in records of its own; else `NO_RANK`.
    If the log does not tell the slowest one, most of the time is a mean over processes (`is_mean`).
    `seconds` are at the highest layer of each file, metadata those of POSIX and STDIO;
    `file_mean_seconds` and `run_mean_seconds` are means over processes of the file, and of the run.
    """

    run_seconds: float
    rank: int
    is_mean: bool
    layers: Mapping[Api, Floats]
    seconds: Floats
    file_mean_seconds: Floats
    run_mean_seconds: Floats

    @cached_property
    def io_seconds(self) -> float:
        """The time in I/O and metadata."""
        return float(self.seconds.sum())

    def part(self, api: Api, operation: Operation, shares: Floats) -> Floats:
        """Take a share (0 to 1) of the time that one operation takes in each file at a layer."""
        found = np.zeros_like(self.seconds)
        row = OPERATIONS.index(operation)
        found[row] = self.layers[api][row] * np.clip(shares, 0, 1)
        return found

    def metadata(self) -> Floats:
        """Take the time of all calls that move no bytes."""
        found = np.zeros_like(self.seconds)
        found[METADATA] = self.seconds[METADATA]
        return found

    def above_file_mean(self, files: Bools) -> Floats:
        """Take the time above the mean of the processes of the same file, in some of the files."""
        return np.where(files, np.maximum(self.seconds - self.file_mean_seconds, 0), 0.0)

    def above_run_mean(self, ranks: Ints | None = None) -> Floats:
        """Take the time above the mean of all processes, in all files together.

        It is 0 if `ranks` surely lack the slowest process: without them the run ends no earlier.
        """
        if ranks is not None and self.rank != NO_RANK and self.rank not in ranks:
            return np.zeros_like(self.seconds)
        above = self.io_seconds - float(self.run_mean_seconds.sum())
        return self.spread(above, np.ones_like(self.seconds, bool))

    def spread(self, seconds: float, where: Bools) -> Floats:
        """Spread seconds over the times of some files and kinds, and no more than these."""
        whole = np.where(where, self.seconds, 0.0)
        total = float(whole.sum())
        return whole * min(max(seconds, 0.0) / total, 1.0) if total else whole


def process_times_of(facts: Facts) -> ProcessTimes:
    """Find the time that I/O takes of the slowest process.

    Of files whose records Darshan reduced to one, the slowest process of each file counts, with
    reads, writes and metadata in the proportion of all processes. Of other files the process
    counts whose records take longest together; below MPI-IO it is the busiest aggregator.
    """
    counted = {api: _counted(facts, layer) for api, layer in facts.layers.items()}
    busy = rank_seconds((facts.layers[api], counted[api].sum(axis=0)) for api in counted)
    rank = int(busy.rank[np.argmax(busy.seconds)]) if len(busy.rank) else NO_RANK
    shape = (len(KINDS), len(facts.files))
    layers = {api: np.zeros(shape) for api in facts.layers}
    seconds, file_mean, run_mean = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    unknown = 0.0
    for api, layer in facts.layers.items():
        weight, is_told = _weights(layer, _rank_of_rows(facts, layer, rank))
        processes = layer.file_processes()
        for row, of_rows in enumerate(_by_kind(layer)):
            layers[api][row, layer.used_files] = layer.of_files(of_rows * weight)
        for row, of_rows in enumerate(counted[api]):
            seconds[row, layer.used_files] += layer.of_files(of_rows * weight)
            together = layer.of_files(of_rows)
            file_mean[row, layer.used_files] += together / np.maximum(processes, 1)
            run_mean[row, layer.used_files] += together / facts.run.processes
            unknown += float((of_rows * weight)[~is_told].sum())
    own = float(busy.seconds.max(initial=0.0))
    total, run_seconds = float(seconds.sum()), facts.run.run_seconds
    scale = min(run_seconds / total, 1.0) if run_seconds and total else 1.0
    return ProcessTimes(
        run_seconds=run_seconds,
        rank=rank if own > total / 2 else NO_RANK,
        is_mean=unknown > total / 2,
        layers={api: times * scale for api, times in layers.items()},
        seconds=seconds * scale,
        file_mean_seconds=file_mean * scale,
        run_mean_seconds=run_mean * scale,
    )


def _by_kind(layer: Layer) -> Floats:
    """Stack the seconds of each record by kind, of all processes of the record together."""
    stacked = np.stack([layer.reads.seconds, layer.writes.seconds, layer.metadata_seconds])
    # Of hostile numbers the sum could be infinite.
    limited: Floats = np.clip(stacked, 0, LONGEST_SECONDS * layer.processes)
    return limited


def _counted(facts: Facts, layer: Layer) -> Floats:
    """Leave out times that count at another layer."""
    by_kind = _by_kind(layer)
    by_kind[:METADATA] *= facts.files.api[layer.file] == APIS.index(layer.api)
    by_kind[METADATA] *= layer.api in _METADATA_APIS
    return by_kind


def _rank_of_rows(facts: Facts, layer: Layer, rank: int) -> Ints:
    """The process whose records count: below another layer, the one with most time there."""
    is_highest = facts.files.highest(layer)
    below = rank_seconds([(layer, _by_kind(layer).sum(axis=0) * ~is_highest)])
    busiest = int(below.rank[np.argmax(below.seconds)]) if len(below.rank) else NO_RANK
    return np.where(is_highest, rank, busiest)


def _weights(layer: Layer, rank: Ints) -> tuple[Floats, Bools]:
    """The share of each record's time that the slowest process has, and whether it is told."""
    together = _by_kind(layer).sum(axis=0)
    told = np.clip(layer.seconds("F_SLOWEST_RANK_TIME"), 0, together)
    mean = together / layer.processes
    is_told = ~layer.is_reduced | (layer.processes == 1) | (told >= mean)
    reduced = np.maximum(told, mean) / np.where(together > 0, together, 1)
    return np.where(layer.is_reduced, reduced, layer.rank == rank), is_told
