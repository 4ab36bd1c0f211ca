"""The most bandwidth of an uneven phase, which lasts as long as its busiest process or node.

A benchmark spreads the same bytes evenly. If one compute node of a phase moves 1/e of all bytes,
the phase has at most e times the bandwidth of one node, as if e even nodes did it. A node is known
to be as fast as the fastest of a benchmark on at most e nodes, which compete less for the storage;
benchmarks on more nodes may show faster ones, but alone they only show how fast the storage is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Literal

from benchdb.measurements.curves import Curve
from summario.phases.values import Phase

# Less unevenness is within the noise of benchmarks. IOR's random order is uneven by up to a fifth,
# in its benchmarks too.
_EVEN = 1.25

Limits = tuple[tuple[int, float], ...]


def placed_nodes(phase: Phase, nodes: int | None) -> int | None:
    """Count the compute nodes of a phase, as a trace names them; None if they cannot be right.

    Where several nodes share a host name, the trace has more processes on one of them than the job.
    """
    if phase.nodes is None or nodes is None or not phase.nprocs:
        return phase.nodes
    fits = phase.processes <= phase.nodes * math.ceil(phase.nprocs / nodes)
    return phase.nodes if fits else None


def limits_of(phase: Phase, nodes: int | None, curves: Iterable[Curve]) -> Limits:
    """Find the most MiB/s of an uneven phase by number of I/O nodes; empty if nothing limits it."""
    least: dict[int, float] = {}
    for owner, equal in _owners(phase, nodes):
        for io_nodes, rate_mib_s in _fastest(phase.operation, owner, equal, curves).items():
            least[io_nodes] = min(rate_mib_s * equal, least.get(io_nodes, math.inf))
    return tuple(sorted(least.items()))


def _owners(phase: Phase, nodes: int | None) -> Iterator[tuple[Literal["tasks", "nodes"], float]]:
    """Name what holds the bytes unevenly, with the number of equal ones that take as long."""
    placed = placed_nodes(phase, nodes)
    if (largest := phase.largest_process_bytes) and largest * phase.processes > _EVEN * phase.bytes:
        yield "tasks", phase.bytes / largest
    if placed and (largest := phase.largest_node_bytes) and largest * placed > _EVEN * phase.bytes:
        yield "nodes", phase.bytes / largest


def _fastest(
    operation: str, owner: Literal["tasks", "nodes"], equal: float, curves: Iterable[Curve]
) -> dict[int, float]:
    """Find the fastest process or node by number of I/O nodes, if a benchmark had few enough."""
    rates: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for curve in curves:
        count = getattr(curve.config, owner)
        if count and curve.config.operation == operation:
            for io_nodes, values in curve.bandwidths_mib_s.items():
                rates[io_nodes].append((count, median(values) / count))
    return {
        io_nodes: max(rate for _, rate in found)
        for io_nodes, found in rates.items()
        if min(count for count, _ in found) <= equal
    }
