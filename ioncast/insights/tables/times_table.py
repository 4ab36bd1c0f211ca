"""Table 6, time: seconds of a process with files open and in calls (Carns et al. 2009, Fig. 7b)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.rank_times import rank_seconds
from ioncast.insights.facts.values import Floats, Layer
from ioncast.insights.tables.scopes import LayerScope, Scope
from ioncast.insights.tables.values import Line, Table
from ioncast_base.limits import LONGEST_SECONDS

IN_CALLS = "read, write and metadata"
SLOWEST = f"slowest process: {IN_CALLS}"


def times(scope: Scope) -> Table:
    """Compute the mean time of a process in each layer, with shares of the run time.

    The mean hides one busy process, so the slowest one stands beside it, as far as a log tells it:
    a reduced record has only the slowest one of its file. It has only the first open and the last
    close too, and files that are open at the same time all count, so "files open" is at most that.
    """
    lines = [line for layer in scope.layers() for line in _of_layer(layer)]
    return Table("time", "Time per process", tuple(lines))


def time_per_process(layer: LayerScope, name: str = IN_CALLS) -> Line:
    """Compute the mean time of a process in all calls of a layer."""
    return _mean(layer, name, seconds_in_calls(layer.layer))


def _of_layer(layer: LayerScope) -> Iterator[Line]:
    values = layer.layer
    # Darshan's times of MPI-IO opens and closes are not reliable; those of POSIX are.
    if values.api != "MPIIO":
        yield _mean(layer, "files open", _open_seconds(layer), notes="at most")
    yield _mean(layer, "read", values.reads.seconds)
    yield _mean(layer, "write", values.writes.seconds)
    yield _mean(layer, "metadata", values.metadata_seconds)
    yield time_per_process(layer)
    yield _line(layer, SLOWEST, _slowest(layer), notes="at least")


def _mean(layer: LayerScope, name: str, seconds: Floats, notes: str = "") -> Line:
    """Divide the seconds of all records by the processes."""
    with np.errstate(over="ignore"):
        mean = layer.sum(seconds) / _processes(layer.scope)
    return _line(layer, name, mean, notes)


def _line(layer: LayerScope, name: str, seconds: Floats, notes: str = "") -> Line:
    whole = np.full(len(seconds), layer.scope.facts.run.run_seconds)
    return layer.line(name, seconds, unit="seconds", wholes=whole, of="run time", notes=notes)


def _processes(scope: Scope) -> NDArray[Any]:
    """Count the processes of the run, or those that used each file."""
    if scope.by_file:
        return np.maximum(scope.facts.files.processes[scope.files], 1)
    return np.array([max(scope.facts.run.processes, 1)])


def _open_seconds(layer: LayerScope) -> Floats:
    """Compute the seconds that the processes of each record have its file open."""
    values = layer.layer
    window = values.seconds("F_CLOSE_END_TIMESTAMP") - values.seconds("F_OPEN_START_TIMESTAMP")
    is_possible = (window > 0) & (window < LONGEST_SECONDS)
    return np.where(is_possible, window, 0.0) * values.processes


def _slowest(layer: LayerScope) -> Floats:
    """Compute the time of the slowest process as far as the log tells it."""
    values = layer.layer
    in_file = np.where(values.is_reduced, values.seconds("F_SLOWEST_RANK_TIME"), 0.0)
    own = np.where(values.is_reduced, 0.0, seconds_in_calls(values))
    if layer.scope.by_file:
        return layer.largest(np.maximum(in_file, own))
    counts = layer.groups >= 0
    of_ranks = rank_seconds([(values, np.where(counts, own, 0.0))]).seconds
    return np.array([max(in_file[counts].max(initial=0.0), of_ranks.max(initial=0.0))])


def seconds_in_calls(layer: Layer) -> Floats:
    """Add up the time of each record in reads, writes and metadata calls."""
    with np.errstate(over="ignore"):
        return layer.reads.seconds + layer.writes.seconds + layer.metadata_seconds
