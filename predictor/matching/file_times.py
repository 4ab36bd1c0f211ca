"""The seconds that a phase of many files spends in metadata calls, by the rates of mdtest.

time(n) = bytes / bandwidth(n) + files / rate(n). A write creates its files; a read opens, reads and
closes them. The bytes that mdtest moved in each file are in its rate already, so only the rest has
the bandwidth of IOR.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.file_rates import FileRate
from summario.phases.values import Phase

Array = NDArray[np.float64]

# A file system stores smaller files in as many blocks.
_BLOCK_BYTES = 4096
# Rates of so many times more or fewer processes do not stand for a phase.
_FAR = 4.0
# mdtest did the I/O of a phase if it moved at least this share of its bytes.
_WHOLE = 0.9
# Runs of mdtest scatter by at least this standard deviation of the logarithm, and by the other one
# if no run was repeated.
_LEAST_SCATTER, _UNREPEATED_SCATTER = 0.08, 0.3


@dataclass(frozen=True)
class FileTime:
    """The rates that stand for the metadata calls of a phase.

    Attributes
    ----------
    covered : float
        The share of the phase's bytes that mdtest moved too.
    mib : float
        The phase's bytes in MiB.
    rates : tuple of (int, float, int)
        I/O nodes, typical files per second of all processes, and the number of runs.
    scatter, doubt : float
        Standard deviations of the logarithm of a run's rate, and of all rates together, because
        mdtest had another number of processes.
    """

    operation: str
    files: int
    covered: float
    mib: float
    tasks: int
    bytes_per_file: int
    rates: tuple[tuple[int, float, int], ...]
    scatter: float
    doubt: float

    @property
    def is_whole(self) -> bool:
        """Whether mdtest did the same I/O, so that no benchmark of bytes is nearer to the phase."""
        return self.covered >= _WHOLE

    def files_per_s(self, io_nodes: Sequence[int]) -> Array:
        """Interpolate the rates in the logarithms; direct access stands apart."""
        direct = [rate for n, rate, _ in self.rates if n == 0]
        forwarded = [(math.log2(n), math.log(rate)) for n, rate, _ in self.rates if n]
        if not forwarded:
            return np.full(len(io_nodes), direct[0])
        places, logarithms = zip(*forwarded, strict=True)
        through: Array = np.exp(np.interp(np.log2(np.maximum(io_nodes, 1)), places, logarithms))
        return np.where(np.equal(io_nodes, 0), direct[0], through) if direct else through

    def runs(self, io_nodes: Sequence[int]) -> Array:
        """The number of runs behind each rate; 1 where the rate is interpolated."""
        counts = {n: count for n, _, count in self.rates}
        return np.array([counts.get(n, 1) for n in io_nodes], float)


def file_time(
    phase: Phase, rates: Iterable[FileRate], processes: int, io_nodes: Collection[int]
) -> FileTime | None:
    """Find the rates for a phase that is mostly metadata, each file of which one process uses.

    Parameters
    ----------
    rates : iterable of FileRate
        All rates of the system.
    processes : int
        The processes of the benchmark of the phase.
    io_nodes : collection of int
        The numbers of I/O nodes with which bandwidths were measured.

    Returns
    -------
    FileTime or None
        The rates of the nearest number of processes, and of those the rates of the largest files
        that are not larger than the phase's; shared and own directories count alike, because the
        counters do not tell them. None if no rates with all of `io_nodes` are near.
    """
    if not (phase.is_mostly_metadata and phase.file_access == "unique"):
        return None
    if not (phase.bytes and phase.n_files and io_nodes):
        return None
    size = phase.bytes / phase.n_files
    operation = "create" if phase.operation == "write" else "read"
    groups: dict[tuple[int, int], dict[int, list[float]]] = {}
    for rate in rates:
        is_near = 1 / _FAR <= rate.tasks / processes <= _FAR
        if rate.used and rate.operation == operation and is_near and _fits(rate, size):
            cells = groups.setdefault((rate.tasks, rate.bytes_per_file), {})
            cells.setdefault(rate.io_nodes, []).append(math.log(rate.files_per_s))
    usable = [key for key, cells in groups.items() if set(io_nodes) <= set(cells)]
    if not usable:
        return None
    tasks, written = min(usable, key=lambda key: (abs(math.log(key[0] / processes)), -key[1]))
    cells = groups[tasks, written]
    # Rates grow with the processes at most in proportion, and may not grow at all.
    ratio = math.log(processes / tasks)
    return FileTime(
        operation=operation,
        files=phase.n_files,
        covered=min(written / size, 1.0),
        mib=phase.bytes / (1 << 20),
        tasks=tasks,
        bytes_per_file=written,
        rates=tuple(
            (n, math.exp(sum(values) / len(values) + ratio / 2), len(values))
            for n, values in sorted(cells.items())
        ),
        scatter=_scatter(cells.values()),
        doubt=abs(ratio) / math.sqrt(12),
    )


def _fits(rate: FileRate, size: float) -> bool:
    """Whether mdtest moved no more blocks in each file than a phase with files of `size` bytes."""
    return math.ceil(rate.bytes_per_file / _BLOCK_BYTES) <= math.ceil(size / _BLOCK_BYTES)


def _scatter(cells: Iterable[Sequence[float]]) -> float:
    """The standard deviation of logarithms in repeated cells, all together."""
    repeated = [np.array(values) for values in cells if len(values) > 1]
    if not repeated:
        return _UNREPEATED_SCATTER
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in repeated)
    freedom = sum(len(values) - 1 for values in repeated)
    return max(math.sqrt(squares / freedom), _LEAST_SCATTER)
