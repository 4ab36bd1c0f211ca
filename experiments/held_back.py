"""How well patterns are predicted whose measurements are held back, on a data set's own curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.composition.decision import fewest_near_best
from predictor.composition.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import Knowledge
from predictor.validation.against_reruns import (
    Comparison,
    Expected,
    Reruns,
    compare,
    mean_of_cells,
    noise_floor,
)
from summario.phases.values import Part, Phase

LEFT_OUT = "each pattern left out"
# Of the runs of a cell numbered from 1 in their order: what repetitions are numbered from differs.
HALVES = ("even runs left out", "odd runs left out")
MODEL = "ioncast"
NEAREST = "nearest benchmark"
FLOOR = "noise floor"


@dataclass(frozen=True)
class Judged:
    """A pattern predicted in some way, held against its own runs.

    Attributes
    ----------
    protocol, way : str
        What was held back, and what predicted it.
    pattern : str
        Its name.
    best : int or None
        The number of I/O nodes that is predicted best; None where nothing is predicted.
    measured_best : int
        The one with the highest measured mean.
    comparison : Comparison
        Empty where nothing is predicted.
    """

    protocol: str
    way: str
    pattern: str
    best: int | None
    measured_best: int
    comparison: Comparison


def hold_back(known: Mapping[str, Curve]) -> Iterator[Judged]:
    """Predict what is held back: each pattern by the others, repetitions by the others.

    Ways are the prediction as users get it, the same without a model (the nearest benchmark
    stands in, as in Inria RR-9366), and the same number of I/O nodes for all. Beside them stands
    the noise floor (see `predictor.validation.against_reruns.noise_floor`).

    Parameters
    ----------
    known : mapping of str to Curve
        What was measured, by the names of patterns.
    """
    for name, curve in known.items():
        ways = _ways(tuple(other for other in known.values() if other is not curve))
        yield from _predicted(LEFT_OUT, ways, name, curve)
        yield from _unpredicted(name, curve.bandwidths_mib_s)
    for first, protocol in enumerate(HALVES):
        halves = {name: _halves(curve, first) for name, curve in known.items()}
        ways = _ways(tuple(half for half, _ in halves.values()))
        for name, (_, rest) in halves.items():
            if rest.bandwidths_mib_s:
                yield from _predicted(protocol, ways, name, rest)


def phase_of(
    config: IorConfig,
    moved_bytes: int | None = None,
    *,
    start_s: float = 0.0,
    time_s: float = 1.0,
) -> Phase:
    """The phase that Darshan would show of a run of a configuration.

    Parameters
    ----------
    config : IorConfig
        What is run.
    moved_bytes : int, optional
        By all processes, if not as many as the configuration says.
    start_s, time_s : float
        When it begins, and how long it takes.

    Examples
    --------
    >>> phase = phase_of(IorConfig.from_command_line("ior -w -F -b 4m -t 1m"))
    >>> phase.bytes, phase.requests, phase.file_access, phase.spatiality
    (4194304, 4, 'unique', 'contiguous')
    """
    tasks = config.tasks or 1
    moved = tasks * config.bytes_per_process if moved_bytes is None else moved_bytes
    requests = moved // config.transfer_size
    return Phase(
        job=1,
        start_seconds=start_s,
        end_seconds=start_s + time_s,
        operation=config.operation,
        rank=None,
        processes=tasks,
        nprocs=tasks,
        bytes=moved,
        io_time_seconds=time_s,
        api=config.api,
        requests=requests,
        spatiality=config.spatiality,
        file_access=config.file_access,
        n_files=tasks if config.file_per_process else 1,
        mode_processes=1 if config.file_per_process else tasks,
        parts=(Part(requests, moved),),
    )


def _ways(curves: tuple[Curve, ...]) -> dict[str, Knowledge]:
    """What a model of some curves tells, and what they tell without."""
    model = fit_model(curves) if curves else None
    return {MODEL: Knowledge(curves, model), NEAREST: Knowledge(curves)}


def _predicted(
    protocol: str, ways: Mapping[str, Knowledge], name: str, curve: Curve
) -> Iterator[Judged]:
    """Predict a curve in each way."""
    runs = curve.bandwidths_mib_s
    measured_best = fewest_near_best(mean_of_cells(runs), 0)
    for way, knowledge in ways.items():
        prediction = predict(
            [phase_of(curve.config)],
            knowledge,
            system="",
            nodes=curve.config.nodes,
            io_nodes=tuple(runs),
        )
        expected = {
            point.io_nodes: Expected(
                point.bandwidth_mib_s.mean, point.bandwidth_mib_s.p10, point.bandwidth_mib_s.p90
            )
            for point in prediction.curve
        }
        chosen = (
            fewest_near_best({n: one.mean for n, one in expected.items()}, 0) if expected else None
        )
        yield Judged(protocol, way, name, chosen, measured_best, compare(expected, runs))


def _unpredicted(name: str, runs: Reruns) -> Iterator[Judged]:
    """What the runs say of themselves, and the same I/O nodes for every pattern."""
    measured = mean_of_cells(runs)
    top = fewest_near_best(measured, 0)
    yield Judged(LEFT_OUT, FLOOR, name, None, top, noise_floor(runs))
    for n, mean in sorted(measured.items()):
        regret = 1 - mean / measured[top]
        always = Comparison(
            hits=(float(n == top),), regrets=(regret,), regrets_within_tolerance=(regret,)
        )
        yield Judged(LEFT_OUT, f"always {n}", name, n, top, always)


def _halves(curve: Curve, first: int) -> tuple[Curve, Curve]:
    """Every second run of each cell from one on, and the others; one that is alone is known."""
    cells = curve.bandwidths_mib_s
    known = {n: runs[first::2] or runs for n, runs in cells.items()}
    rest = {n: runs[1 - first :: 2] for n, runs in cells.items() if len(runs) > 1}
    return replace(curve, bandwidths_mib_s=known), replace(curve, bandwidths_mib_s=rest)
