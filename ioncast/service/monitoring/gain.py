"""The gain of decisions over a site's default, from the outcomes of their jobs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ioncast.service.monitoring.decision_errors import (
    application_and_size,
    measured_bandwidths,
)
from ioncast.service.store.outcomes import JoinedOutcome
from predictor.model.plausible import is_implausible_beside

# With one application an interval would say nothing about the others.
_FEWEST_APPLICATIONS = 2


@dataclass(frozen=True)
class Gain:
    """The gain of a system's jobs over the bandwidth that they would have had with the default.

    `ratio` is the geometric mean over jobs of the bandwidth that a job got, over that with
    `default` I/O nodes: as runs of the same application and size measured it, which counts for
    `measured` jobs, else as the decision predicted it. A job that got the default has the ratio 1.
    The interval from `p10` to `p90` is that of the mean, if other applications had run: a cluster
    for each application and Student's t distribution. It does not contain a bias that all
    predictions share.
    """

    system: str
    default: int
    jobs: int
    measured: int
    applications: int
    ratio: float
    p10: float
    p90: float


def gains(
    rows: Iterable[JoinedOutcome], default_of: Callable[[str], int | None]
) -> tuple[Gain, ...]:
    """Compute the gain of each system with outcomes of at least two applications, by name.

    The newest outcomes count that have a decision of ioncast, unless the system has changed since.
    A site without a default leaves its jobs direct access.
    """
    known = [row for row in rows if not row.is_before_change]
    bandwidths = measured_bandwidths(known)
    logarithms: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    measured: dict[str, int] = defaultdict(int)
    for row in known:
        system, application = row.outcome.system, row.application
        if application is None or row.decision is None or row.decision.source == "default":
            continue
        default = default_of(system) or 0
        runs = bandwidths.get(application_and_size(row), {}).get(default)
        logarithm = _logarithm(row, default, runs)
        if logarithm is not None:
            logarithms[system][application.id].append(logarithm)
            measured[system] += bool(runs)
    return tuple(
        _gain(system, default_of(system) or 0, list(by_application.values()), measured[system])
        for system, by_application in sorted(logarithms.items())
        if len(by_application) >= _FEWEST_APPLICATIONS
    )


def _logarithm(row: JoinedOutcome, default: int, runs: Sequence[float] | None) -> float | None:
    """The logarithm of a job's gain; None if nothing tells its bandwidth with the default."""
    got_mib_s, io_nodes = row.outcome.bandwidth_mib_s, row.outcome.io_nodes
    curve = row.decision.curve if row.decision else ()
    if is_implausible_beside(got_mib_s, io_nodes, curve):
        return None
    if io_nodes == default:
        return 0.0
    predicted = {n: mean for n, mean, _, _ in curve}
    without_mib_s = geometric_mean(runs) if runs else predicted.get(default)
    return math.log(got_mib_s / without_mib_s) if without_mib_s else None


def _gain(system: str, default: int, clusters: Sequence[Sequence[float]], measured: int) -> Gain:
    # Importing SciPy would take a third of the time in which a keeper starts.
    from scipy.special import stdtrit  # noqa: PLC0415

    jobs = sum(map(len, clusters))
    mean = sum(map(sum, clusters)) / jobs
    between = sum((sum(cluster) - len(cluster) * mean) ** 2 for cluster in clusters)
    number = len(clusters)
    deviation = math.sqrt(between * number / (number - 1)) / jobs
    half = float(stdtrit(number - 1, 0.9)) * deviation
    return Gain(
        *(system, default, jobs, measured, number),
        *(math.exp(mean), math.exp(mean - half), math.exp(mean + half)),
    )
