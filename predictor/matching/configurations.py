"""I/O phases to IOR configurations, and those to the nearest that were measured.

Source: Inria RR-9366, §6.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from summario.phases.values import Part, Phase

# IOR refuses sizes that are no multiple of its own offset type.
_ACCESS_BYTES = 8


@dataclass(frozen=True)
class Match:
    """How a part of a phase was matched to a benchmark.

    Attributes
    ----------
    kind : str
        "exact", "interpolated" (between what was measured of its kind; without a model the
        nearest one stands in), "model" (beyond it, see `model.Knowledge`) or "unknown".
    wanted : IorConfig
        The configuration that does what the part does.
    curve : Curve or None
        The benchmark that stands for it.
    distance : float or None
        Euclidean, in natural logarithms of `features`; 0 is exact.
    ratios : dict of str to float
        The features that differ: measured / wanted.
    beyond : dict of str to float
        The features that nothing measured of its kind reaches: the nearest / wanted.
    """

    kind: str
    wanted: IorConfig
    curve: Curve | None = None
    distance: float | None = None
    ratios: dict[str, float] = field(default_factory=dict)
    beyond: dict[str, float] = field(default_factory=dict)

    @property
    def repetitions(self) -> dict[int, tuple[float, ...]]:
        """What was measured of the very configuration that is wanted, by I/O nodes."""
        return self.curve.bandwidths_mib_s if self.curve and self.kind == "exact" else {}


@dataclass(frozen=True)
class MatchedPhase:
    """A phase, its number in the job, and the benchmark that each of its parts matched.

    `parts_time_s` are the seconds that each part is expected to take by itself, by number of
    I/O nodes; none where nothing is known of it.
    """

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]
    parts_time_s: tuple[dict[int, float], ...]

    @property
    def main(self) -> Match:
        """The match of the part with most bytes."""
        return max(self.parts, key=lambda pair: pair[0].bytes)[1]

    @property
    def time_s(self) -> dict[int, float]:
        """Seconds that the phase is expected to take by itself, by number of I/O nodes."""
        points = dict.fromkeys(n for times in self.parts_time_s for n in times)
        return {n: sum(times.get(n, 0.0) for times in self.parts_time_s) for n in points}


def configuration(phase: Phase, part: Part, nodes: int | None = None) -> IorConfig:
    """The IOR run that does what one part of a phase does.

    Parameters
    ----------
    phase : Phase
        The phase.
    part : Part
        One of its parts.
    nodes : int, optional
        Compute nodes of the job; a log does not know them.

    Returns
    -------
    IorConfig
        With sizes rounded to what IOR takes: multiples of 8 bytes, blocks of whole
        transfers, and two transfers or more where they are shuffled. IOR has no stdio
        engine; POSIX stands in for it.
    """
    processes = tasks(phase)
    transfer = max(round(part.request_bytes / _ACCESS_BYTES), 1) * _ACCESS_BYTES
    transfers = max(round(part.bytes / processes / transfer), 1)
    random = phase.spatiality == "random"
    strided = phase.spatiality == "sequential"
    if random:
        transfers = max(transfers, 2)
    return IorConfig(
        api="MPIIO" if phase.api == "MPIIO" else "POSIX",
        write=phase.operation == "write",
        read=phase.operation == "read",
        file_per_process=phase.file_access == "unique",
        collective=phase.spatiality == "collective",
        random_offsets=int(random),
        transfer_size=transfer,
        block_size=transfer if strided else transfer * transfers,
        segments=transfers if strided else 1,
        tasks=processes,
        nodes=min(nodes, processes) if nodes else None,
    )


def tasks(phase: Phase) -> int:
    """Processes of the IOR run: as many as use a shared file, or one per own file."""
    if phase.file_access == "shared":
        return max(phase.mode_processes, 1)
    return max(min(phase.n_files, phase.nprocs or phase.n_files), 1)
