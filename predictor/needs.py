"""Which benchmarks a site lacks: what its applications do, and how surely that is known.

The order is a stopgap until the model's own variance is there: the share of the bytes that
a configuration stands for, times the error that is expected of its curve as it is known now,
over the minutes that its runs take.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchdb.cells import spread
from benchdb.curves import Curve
from ior_configs import IorConfig
from predictor.matching import Match, configuration, tasks
from summario.phases import Phase

# Left-out patterns of FORGE's measurements (MareNostrum 4) are 0.28 off with the nearest
# neighbour's curve, whose distance is about 1.
_ERROR_PER_DISTANCE = 0.3
# The median variation of repetitions there.
_USUAL_SPREAD = 0.16
# Less certain is a mean of fewer repetitions than its spread says.
_FEW = 5
# Known well enough not to be measured again.
_WELL_KNOWN = 0.1
# Where nothing was measured on the system.
_GUESSED_MIB_S = 1024.0
_MIB = 1 << 20


class Wanted(NamedTuple):
    """What applications do of one configuration: bytes in all, and in how many jobs."""

    bytes: int
    jobs: int


@dataclass(frozen=True)
class Need:
    """A configuration that is to be measured, and why.

    Attributes
    ----------
    config : IorConfig
        What to run.
    wanted : Wanted or None
        What applications do of it; None where a campaign asks for it.
    known : str
        "measured" (every cell), "partly measured", "interpolated" or "unknown".
    error : float
        Expected relative error of its curve as it is known now, 0 to 1.
    missing : int
        Cells (numbers of I/O nodes) with fewer repetitions than asked for.
    seconds : float
        What its runs are expected to take.
    """

    config: IorConfig
    wanted: Wanted | None
    known: str
    error: float
    missing: int
    seconds: float

    @property
    def is_open(self) -> bool:
        """Whether measuring would help: cells are missing, or what is there varies much."""
        return self.missing > 0 or self.error > _WELL_KNOWN

    @property
    def gain(self) -> float:
        """Bytes times error that a second of benchmarking is expected to take away."""
        moved = self.wanted.bytes if self.wanted else 1
        return moved * self.error / self.seconds


def wanted_of(
    jobs: Iterable[Sequence[Phase]], nodes: Callable[[int], int]
) -> dict[IorConfig, Wanted]:
    """Add up what jobs do, by the configuration that stands for it.

    Parameters
    ----------
    jobs : iterable of sequence of Phase
        The phases of each job.
    nodes : callable
        Compute nodes of a number of processes; a log does not know them.

    Returns
    -------
    dict of IorConfig to Wanted
        In the order of their first appearance.
    """
    totals: dict[IorConfig, Wanted] = {}
    for phases in jobs:
        moved: dict[IorConfig, int] = {}
        for phase in phases:
            for part in phase.parts:
                config = configuration(phase, part, nodes(tasks(phase)))
                moved[config] = moved.get(config, 0) + part.bytes
        for config, count in moved.items():
            before = totals.get(config, Wanted(0, 0))
            totals[config] = Wanted(before.bytes + count, before.jobs + 1)
    return totals


def needs_of(
    wanted: Mapping[IorConfig, Wanted | None],
    find: Callable[[IorConfig], Match],
    *,
    io_nodes: Collection[int],
    repetitions: int,
    start_s: float,
) -> list[Need]:
    """Say how surely each configuration is known, most worth measuring first.

    Parameters
    ----------
    wanted : mapping of IorConfig to Wanted or None
        What is asked for.
    find : callable
        The benchmark that stands for a configuration today.
    io_nodes : collection of int
        Numbers of I/O nodes that the system can give.
    repetitions : int
        How many of each cell are asked for.
    start_s : float
        Seconds that a run takes beside its I/O.
    """
    found = {config: find(config) for config in wanted}
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
            error=_error(match, io_nodes),
            missing=len(_missing(match, io_nodes, repetitions)),
            seconds=repetitions
            * sum(start_s + _io_seconds(config, match.curve, n, usual) for n in io_nodes),
        )
        for config, match in found.items()
    ]
    return sorted(needs, key=lambda need: -need.gain)


def within(needs: Iterable[Need], budget_s: float) -> list[Need]:
    """Take needs in their order as long as their runs fit into a budget of seconds."""
    taken: list[Need] = []
    left = budget_s
    for need in needs:
        if need.seconds <= left:
            taken.append(need)
            left -= need.seconds
    return taken


def _missing(match: Match, io_nodes: Collection[int], repetitions: int) -> list[int]:
    """Numbers of I/O nodes with fewer repetitions of the very configuration than asked for."""
    measured = match.curve.bandwidths_mib_s if match.curve and match.kind == "exact" else {}
    return [n for n in io_nodes if len(measured.get(n, ())) < repetitions]


def _known(match: Match, io_nodes: Collection[int], repetitions: int) -> str:
    if match.kind != "exact":
        return match.kind
    return "partly measured" if _missing(match, io_nodes, repetitions) else "measured"


def _error(match: Match, io_nodes: Collection[int]) -> float:
    """Expected relative error of the mean over all numbers of I/O nodes."""
    if match.curve is None:
        return 1.0
    if match.kind == "interpolated":
        return min(1.0, _ERROR_PER_DISTANCE * max(match.distance or 0.0, 1.0))
    cells = [match.curve.bandwidths_mib_s.get(n, ()) for n in io_nodes]
    return statistics.fmean(_error_of_mean(values) for values in cells)


def _error_of_mean(values: Sequence[float]) -> float:
    if not values:
        return _ERROR_PER_DISTANCE
    varies = spread(values) or 0.0
    if len(values) < _FEW:
        varies = max(varies, _USUAL_SPREAD)
    return varies / math.sqrt(len(values))


def _io_seconds(config: IorConfig, curve: Curve | None, io_nodes: int, usual: float) -> float:
    moved = (config.tasks or 1) * config.bytes_per_process / _MIB
    # What is read is written first.
    moved *= 2 if config.read else 1
    values = curve.bandwidths_mib_s.get(io_nodes) if curve else None
    return moved / (statistics.fmean(values) if values else usual)
