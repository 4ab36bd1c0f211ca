"""The I/O of the jobs of a queue: given by the queue, or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import log2
from random import Random

import numpy as np
from numpy.typing import NDArray

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replayed_machine import Machine, static
from ioncast_base.errors import InputError

MIB = 1 << 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Workload:
    """A queue with its I/O; arrays have one element for each job, by submission.

    `recorded_s` are run times, `compute_s` those without I/O, `moved_mib` MiB that a job reads and
    writes. `curve` is the index in `curves`, which give the I/O times, and in `believed`, which
    policies decide by. `overlong` counts jobs whose given bytes need more than their recorded run
    time with static allocation.
    """

    curves: tuple[IoCurve, ...]
    believed: tuple[IoCurve, ...]
    submit_s: Floats
    recorded_s: Floats
    limit_s: Floats
    nodes: Ints
    curve: Ints
    compute_s: Floats
    moved_mib: Floats
    overlong: int

    def __len__(self) -> int:
        return len(self.submit_s)


def workload(
    jobs: Sequence[QueuedJob],
    curves: Sequence[IoCurve],
    machine: Machine,
    *,
    io_share: tuple[float, float],
    seed: int,
) -> Workload:
    """Give each job the I/O that it did when its run time was recorded.

    If the queue does not tell, an application follows one of the curves that were measured with a
    number of compute nodes near to the job's, and spends a share of its run time on I/O. Curve and
    share are drawn, the share between the two of `io_share`. The recorded run times are taken as
    those with static allocation, so the share, the run time and the curve give the bytes. A job
    that is larger than the machine is an InputError.
    """
    check_sizes(jobs, machine)
    places = {curve.name: place for place, curve in enumerate(curves)}
    of_application = cache(lambda application: _drawn(seed, application, io_share))
    near = cache(lambda nodes: _near(nodes, curves))
    recorded_with = cache(lambda place, nodes: static(curves[place], nodes, machine))

    @cache
    def followed(application: str, nodes: int) -> int:
        candidates = near(nodes)
        return candidates[int(of_application(application)[0] * len(candidates))]

    chosen = [
        followed(job.application, job.nodes) if job.curve is None else _named(job.curve, places)
        for job in jobs
    ]
    bandwidth = np.array(
        [
            curves[place].mib_s[recorded_with(place, job.nodes)]
            for place, job in zip(chosen, jobs, strict=True)
        ]
    )
    recorded_s = np.array([job.run_s for job in jobs])
    shares = np.array([of_application(job.application)[1] for job in jobs])
    told_mib = np.array([np.nan if job.bytes is None else job.bytes / MIB for job in jobs])
    moved_mib = np.where(np.isnan(told_mib), shares * recorded_s * bandwidth, told_mib)
    compute_s = recorded_s - moved_mib / bandwidth
    return Workload(
        curves=tuple(curves),
        believed=tuple(curves),
        submit_s=np.array([job.submit_s for job in jobs]),
        recorded_s=recorded_s,
        limit_s=np.array([job.limit_s for job in jobs]),
        nodes=np.array([job.nodes for job in jobs], dtype=np.int64),
        curve=np.array(chosen, dtype=np.int64),
        compute_s=np.maximum(compute_s, 0),
        moved_mib=moved_mib,
        overlong=int((compute_s < 0).sum()),
    )


def check_sizes(jobs: Sequence[QueuedJob], machine: Machine) -> None:
    """Check that no job is larger than the machine."""
    largest = max(job.nodes for job in jobs)
    if largest > machine.nodes:
        raise InputError(
            f"a job of the queue has {largest} nodes, but the machine has {machine.nodes}",
            where="--nodes",
            remedy=f"give at least {largest}",
        )


def _drawn(seed: int, application: str, io_share: tuple[float, float]) -> tuple[float, float]:
    """Draw a number from 0 to 1 that chooses the curve, and the share of I/O, of an application."""
    random = Random(f"{seed} {application}")  # noqa: S311
    return random.random(), random.uniform(*io_share)


def _near(nodes: int, curves: Sequence[IoCurve]) -> list[int]:
    """Indexes of the curves whose nodes are unknown, or nearest by the logarithm."""
    distances = [abs(log2(curve.nodes / nodes)) if curve.nodes else None for curve in curves]
    least = min((distance for distance in distances if distance is not None), default=None)
    return [place for place, distance in enumerate(distances) if distance in {None, least}]


def _named(name: str, places: dict[str, int]) -> int:
    if name not in places:
        raise InputError(
            f"there is no curve {name!r}",
            where="column Curve",
            remedy=f"the first curves are {', '.join(list(places)[:20])}",
        )
    return places[name]
