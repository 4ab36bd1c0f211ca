"""The aggregators of collective phases: the processes that make the POSIX calls below MPI-IO."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ioncast_base.kinds import OPERATIONS
from summario.phases.merge import FilePhases
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, Streams
from summario.reading.heatmap import Heatmap, heatmaps_of
from summario.requests.layers import UNKNOWN, Layers
from summario.requests.traced import Traced

# A process that moves less than this share of the bytes of the busiest one is no aggregator: it
# wrote the header of a file, for example.
_LEAST_SHARE = 0.01
# The share of a heat map's bytes that other files may have.
_OTHERS_SHARE = 0.1


def aggregators_of(
    file_phases: FilePhases, group: Ints, layers: Layers, stack: Stack, traced: Traced
) -> list[int]:
    """Count the aggregators of each group (`group`) of collective rows; -1 if it is not known.

    The list goes up to the largest number in `group`. Rows may be pieces of a file.
    """
    place = layers.rows(file_phases.operation, file_phases.file_id)
    records, heatmaps = _OfRecords(layers), _OfHeatmaps(stack)
    run = stack.runs_of(file_phases.file_id)
    aggregators = [UNKNOWN] * (int(group.max()) + 1)
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    for rows in np.split(order, edges):
        files = np.unique(place[rows])
        if files[0] < 0 or layers.posix.partial[files].any():
            continue
        moved = records.bytes_of_processes(files)
        if moved is None:
            share = file_phases.bytes[rows] / np.maximum(layers.mpiio.bytes[place[rows]], 1)
            moved = heatmaps.bytes_of_processes(
                int(run[rows[0]]),
                file_phases.operation[rows[0]],
                file_phases.start[rows].min(),
                file_phases.end[rows].max(),
                (layers.posix.bytes[place[rows]] * share).sum(),
            )
        if moved is None:
            moved = traced.bytes_of_processes(layers.posix, files)
        if moved is not None:
            aggregators[group[rows[0]]] = int(np.count_nonzero(moved >= _LEAST_SHARE * moved.max()))
    return aggregators


class _OfRecords:
    """The bytes that each process moved, by the POSIX records of ranks."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    @cached_property
    def _has_ranks(self) -> bool:
        return bool((self._layers.streams.rank >= 0).any())

    @cached_property
    def _streams(self) -> tuple[Ints, Streams]:
        """The row of each stream in the layers, and the streams, both sorted by row."""
        streams = self._layers.streams
        row = self._layers.rows(streams.operation, streams.file_id)
        order = np.argsort(row, kind="stable")
        return row[order], streams.take(order)

    def bytes_of_processes(self, files: Ints) -> Floats | None:
        """Add up the bytes of some rows; None if a record is of all ranks."""
        if not self._has_ranks:
            return None
        row, streams = self._streams
        first, end = (np.searchsorted(row, files, side) for side in ("left", "right"))
        pairs = zip(first.tolist(), end.tolist(), strict=True)
        streams = streams.take(np.concatenate([np.arange(*pair) for pair in pairs]))
        if (streams.rank < 0).any():
            return None
        processes = np.stack([streams.log, streams.rank])
        _, process = np.unique(processes, axis=1, return_inverse=True)
        return np.bincount(process.ravel(), streams.bytes).astype(np.float64, copy=False)


class _OfHeatmaps:
    """The bytes that each process moved in a time, by the heat map of POSIX."""

    def __init__(self, stack: Stack) -> None:
        self._runs = stack.runs
        self._found: dict[int, dict[str, Heatmap]] = {}

    def _heatmaps(self, place: int) -> dict[str, Heatmap]:
        """The heat maps of a run by operation; each bin also has the bytes of the bins before."""
        if len(self._runs[place].logs) > 1:
            return {}
        if place not in self._found:
            self._found[place] = {
                operation: replace(heatmap, bytes=np.cumsum(heatmap.bytes, axis=1))
                for (api, operation), heatmap in heatmaps_of(self._runs[place].logs[0]).items()
                if api == "POSIX"
            }
        return self._found[place]

    def bytes_of_processes(
        self,
        place: int,
        operation: int,
        start_seconds: float,
        end_seconds: float,
        expected_bytes: float,
    ) -> Floats | None:
        """Add up the bytes of a run in a time; None if they are not mainly the expected ones."""
        heatmap = self._heatmaps(place).get(OPERATIONS[operation])
        if heatmap is None:
            return None
        last_bin = heatmap.bytes.shape[1] - 1
        first, last = (
            min(max(int(seconds / heatmap.bin_seconds), 0), last_bin)
            for seconds in (start_seconds, end_seconds)
        )
        before = heatmap.bytes[:, first - 1] if first else 0
        moved = (heatmap.bytes[:, last] - before).astype(np.float64)
        is_theirs = 0 < (1 - _OTHERS_SHARE) * moved.sum() <= expected_bytes
        return moved if is_theirs else None
