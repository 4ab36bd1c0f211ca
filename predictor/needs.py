"""The benchmarks that a site lacks, ordered by how much measuring them helps.

The order is the share of all bytes that a configuration stands for, times the expected error of
its curve, over the minutes that its runs take.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.matching.configurations import Match, configuration, tasks
from predictor.model.system_model import SystemModel
from summario.phases.values import Extraction
from summario.runs.hosts import NodeCount

# A complete curve with a smaller expected error is not measured again.
_WELL_KNOWN = 0.1
# The bandwidth to estimate run times with, if nothing was measured on the system.
_GUESSED_MIB_S = 1024.0
_MIB = 1 << 20


class ApplicationUse(NamedTuple):
    """The use of one configuration by applications: bytes in all jobs, and number of jobs."""

    bytes: int
    jobs: int


@dataclass(frozen=True)
class Need:
    """A configuration to measure, with the reasons.

    `wanted` is its use by applications, None if a campaign asks for it; `error` is the expected
    relative error of its present curve, 0 to 1.
    """

    config: IorConfig
    wanted: ApplicationUse | None
    known: str
    error: float
    missing: int
    seconds: float

    @property
    def is_open(self) -> bool:
        """Whether measuring would help: cells are missing, or the expected error is large."""
        return self.missing > 0 or self.error > _WELL_KNOWN

    @property
    def gain(self) -> float:
        """Bytes times error that a second of benchmarking is expected to remove."""
        moved = self.wanted.bytes if self.wanted else 1
        return moved * self.error / self.seconds


def wanted_of(
    jobs: Iterable[Extraction], nodes: Callable[[NodeCount | None, int], int]
) -> dict[IorConfig, ApplicationUse]:
    """Add up the bytes of jobs by configuration, in the order of their first appearance.

    `nodes` tells the compute nodes of a configuration from those that the log names, and its number
    of processes.
    """
    totals: dict[IorConfig, ApplicationUse] = {}
    for job in jobs:
        moved: dict[IorConfig, int] = {}
        for phase in job.phases:
            for part in phase.parts:
                config = run_to_measure(configuration(phase, part, nodes(job.nodes, tasks(phase))))
                moved[config] = moved.get(config, 0) + part.bytes
        for config, count in moved.items():
            before = totals.get(config, ApplicationUse(0, 0))
            totals[config] = ApplicationUse(before.bytes + count, before.jobs + 1)
    return totals


def needs_of(
    wanted: Mapping[IorConfig, ApplicationUse | None],
    knowledge: SystemModel,
    *,
    io_nodes: Collection[int],
    repetitions: int,
    start_s: float,
) -> list[Need]:
    """Order configurations by how much measuring them helps, the most helpful first."""
    found = {config: knowledge.match(config) for config in wanted}
    speeds = [
        statistics.fmean(values)
        for match in found.values()
        if match.curve
        for values in match.curve.bandwidths_mib_s.values()
    ]
    usual = statistics.median(speeds) if speeds else _GUESSED_MIB_S
    needs = [
        Need(
            config=config,
            wanted=wanted[config],
            known=_known(match, io_nodes, repetitions),
            error=_error(match, knowledge, io_nodes),
            missing=len(_missing(match, io_nodes, repetitions)),
            seconds=repetitions
            * sum(start_s + _io_seconds(config, match.curve, n, usual) for n in io_nodes),
        )
        for config, match in found.items()
    ]
    return sorted(needs, key=lambda need: -need.gain)


def run_to_measure(config: IorConfig) -> IorConfig:
    """The run to measure: IOR either calls fsync or not, and most applications do not."""
    return replace(config, fsync=config.fsync or "none")


def within(needs: Iterable[Need], budget_s: float) -> list[Need]:
    """Take needs in their order, and skip those whose runs no longer fit into the budget."""
    taken: list[Need] = []
    left = budget_s
    for need in needs:
        if need.seconds <= left:
            taken.append(need)
            left -= need.seconds
    return taken


def _missing(match: Match, io_nodes: Collection[int], repetitions: int) -> list[int]:
    """List the numbers of I/O nodes with fewer repetitions of the configuration than asked for."""
    return [n for n in io_nodes if len(match.repetitions.get(n, ())) < repetitions]


def _known(match: Match, io_nodes: Collection[int], repetitions: int) -> str:
    if match.kind != "exact":
        return match.kind
    return "partly measured" if _missing(match, io_nodes, repetitions) else "measured"


def _error(match: Match, knowledge: SystemModel, io_nodes: Collection[int]) -> float:
    """Compute the expected relative error, averaged over all numbers of I/O nodes, at most 1."""
    if match.curve is None:
        return 1.0
    expected = knowledge.expect([match], list(io_nodes))
    # The mean absolute deviation of a normal distribution is √(2 / π) standard deviations.
    errors = np.sqrt(np.diag(expected.covariance)) * math.sqrt(2 / math.pi)
    reached = [knowledge.reaches(n) for n in io_nodes]
    return min(1.0, float(np.where(reached, errors, 1.0).mean()))


def _io_seconds(config: IorConfig, curve: Curve | None, io_nodes: int, usual: float) -> float:
    moved = (config.tasks or 1) * config.bytes_per_process / _MIB
    # A benchmark that reads a file writes it first.
    moved *= 2 if config.read else 1
    values = curve.bandwidths_mib_s.get(io_nodes) if curve else None
    return moved / (statistics.fmean(values) if values else usual)
