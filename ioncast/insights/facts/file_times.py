"""The time that each file took, at its highest layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.slowest_ranks import SharedFiles
from ioncast.insights.facts.values import FileFacts, Floats, Ints, Layer
from ioncast_base.kinds import APIS
from ioncast_base.limits import LONGEST_SECONDS

NO_RANK = -1


@dataclass(frozen=True)
class FileTimes:
    """Seconds of each of `Facts.files`; times of lower layers do not count again.

    `slowest_seconds` is the mean of the file's processes, and `slowest_rank` is `NO_RANK`, if the
    log does not tell the slowest one. The other times are of all processes together.
    """

    read_seconds: Floats
    write_seconds: Floats
    metadata_seconds: Floats
    slowest_seconds: Floats
    slowest_rank: Ints

    @property
    def seconds(self) -> Floats:
        """The time in reads, writes and metadata calls, of all processes together."""
        return self.read_seconds + self.write_seconds + self.metadata_seconds


def file_times_of(facts: FileFacts, shared: SharedFiles) -> FileTimes:
    """Add up the time of each file, and find its slowest process, in shared files among these."""
    files = len(facts.files)
    read, write, metadata, mean = np.zeros((4, files))
    rank = np.full(files, NO_RANK)
    for layer in facts.layers.values():
        used = layer.used_files
        highest = facts.files.api[used] == APIS.index(layer.api)
        rows = used[highest]
        for column, seconds in (
            (read, layer.reads.seconds),
            (write, layer.writes.seconds),
            (metadata, layer.metadata_seconds),
        ):
            column[rows] = layer.of_files(_possible(layer, seconds))[highest]
        processes = layer.file_processes()[highest]
        mean[rows] = (read + write + metadata)[rows] / np.maximum(processes, 1)
        only = layer.of_files(layer.rank, np.maximum)[highest]
        rank[rows] = np.where(processes == 1, only, NO_RANK)
    slowest, rank = _slowest(shared, mean, rank)
    return FileTimes(read, write, metadata, slowest, rank)


def _slowest(shared: SharedFiles, mean: Floats, rank: Ints) -> tuple[Floats, Ints]:
    """Put the slowest process of shared files in the place of the mean."""
    # The slowest one of several logs of a run comes last, so it stays.
    order = np.argsort(shared.slowest.seconds, kind="stable")
    file, seconds = shared.file[order], shared.slowest.seconds[order]
    is_told = seconds >= mean[file]
    found, ranks = mean.copy(), rank.copy()
    found[file[is_told]] = seconds[is_told]
    ranks[file[is_told]] = shared.slowest.rank[order][is_told]
    return found, ranks


def _possible(layer: Layer, seconds: Floats) -> Floats:
    # Of hostile numbers the sum could be infinite.
    limited: Floats = np.clip(seconds, 0, LONGEST_SECONDS * layer.processes)
    return limited
