"""The benchmarks that a site lacks, ordered by how much measuring them helps.

The order is by what a whole curve gains in a second of benchmarking: better choices of I/O nodes
and, in turn, surer bandwidths, weighed by the hours that applications spend in such I/O (see
`predictor.planning.next_run`). Curves that are known well enough come last.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchdb.campaigns.platform_file import Platform
from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.matching.configurations import Match, configuration, tasks
from predictor.model.system_model import SystemModel
from summario.phases.values import Extraction
from summario.runs.hosts import NodeCount

# A complete curve with a smaller expected error is not measured again.
_WELL_KNOWN = 0.1
# The bandwidth in MiB/s that is expected before the first run on a system.
GUESSED_MIB_S = 1024.0
_MIB = 1 << 20
_LOCAL_START_S, _SLURM_START_S = 1.0, 30.0


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
                run = configuration(phase, part, nodes(job.nodes, tasks(phase)))
                # A campaign chooses the repetitions, also those for many files.
                config = run_to_measure(run).pattern()
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
    earlier: Sequence[Curve] = (),
) -> list[Need]:
    """Order configurations by how much measuring them helps, the most helpful first.

    `earlier` are curves from before a change of the system.
    """
    found = {config: knowledge.match(config) for config in wanted}
    speeds = [
        statistics.fmean(values)
        for match in found.values()
        if match.curve
        for values in match.curve.bandwidths_mib_s.values()
    ]
    usual = statistics.median(speeds) if speeds else GUESSED_MIB_S
    needs = [
        Need(
            config=config,
            wanted=wanted[config],
            known=_known(match, io_nodes, repetitions),
            error=_error(match, knowledge, io_nodes),
            missing=len(_missing(match, io_nodes, repetitions)),
            seconds=repetitions
            * sum(
                run_seconds(config, _expected_mib_s(match.curve, n, usual), start_s)
                for n in io_nodes
            ),
        )
        for config, match in found.items()
    ]
    if not needs:
        return []
    # Learning needs SciPy; other commands use this module without it.
    from predictor.planning.knowledge import believed, hours_of, learn, places_of  # noqa: PLC0415
    from predictor.planning.next_run import order_of_curves  # noqa: PLC0415

    runs = [*knowledge.curves, *earlier]
    places = places_of([need.config for need in needs], list(io_nodes), runs)
    belief = believed(places, learn(places))
    moved = {config: use.bytes for config, use in wanted.items() if use is not None}
    hours = hours_of(list(wanted), moved, belief)
    seconds = np.array([need.seconds for need in needs])
    order = [needs[place] for place in order_of_curves(belief, hours, seconds, repetitions)]
    return sorted(order, key=lambda need: not need.is_open)


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


def run_seconds(config: IorConfig, mib_s: float, start_s: float) -> float:
    """Compute how long a run takes with an expected bandwidth, in seconds."""
    moved = (config.tasks or 1) * config.bytes_per_process / _MIB
    # A benchmark that reads a file writes it first.
    return start_s + moved * (2 if config.read else 1) / mib_s


def start_seconds(platform: Platform) -> float:
    """The seconds that a run takes in addition to its I/O.

    They are the start of a process, or the time until the end of a job is noticed.
    """
    return _LOCAL_START_S if platform.slurm is None else _SLURM_START_S


def _expected_mib_s(curve: Curve | None, io_nodes: int, usual: float) -> float:
    values = curve.bandwidths_mib_s.get(io_nodes) if curve else None
    return statistics.fmean(values) if values else usual
