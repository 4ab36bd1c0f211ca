"""The bandwidth of each phase of an application's runs, beside that of the run's first phase.

Inria RR-9366 found that the phases of one run differ: a system that the first phase has warmed up
is another one for the later phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, geometric_mean, pstdev

from predictor.validation.reruns import Rerun


@dataclass(frozen=True)
class PhaseBandwidth:
    """One phase of an application in all of its runs with a number of I/O nodes.

    Attributes
    ----------
    io_nodes : int
        Number of I/O nodes.
    phase : int
        Number of the phase; the first is 1.
    runs : int
        Number of runs.
    mean_mib_s, variation : float
        Mean and coefficient of variation of its bandwidth.
    to_first : float
        Its bandwidth over that of the first phase of the same run, the geometric mean.
    """

    io_nodes: int
    phase: int
    runs: int
    mean_mib_s: float
    variation: float
    to_first: float


def phase_bandwidths(reruns: Iterable[Rerun]) -> Iterator[PhaseBandwidth]:
    """Summarise the phases of an application's runs; runs with one phase tell nothing here."""
    cells: dict[int, list[tuple[float, ...]]] = {}
    for rerun in reruns:
        if len(rerun.phases_mib_s) > 1:
            cells.setdefault(rerun.io_nodes, []).append(rerun.phases_mib_s)
    for io_nodes, runs in sorted(cells.items()):
        first, *_ = phases = list(zip(*runs, strict=False))
        for number, values in enumerate(phases, start=1):
            mean = fmean(values)
            ratios = [value / start for value, start in zip(values, first, strict=True)]
            yield PhaseBandwidth(
                io_nodes, number, len(runs), mean, pstdev(values) / mean, geometric_mean(ratios)
            )
