"""Predicts patterns whose measurements are held back, and compares with these measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.curve.decision import fewest_near_best
from predictor.curve.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
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
# Runs count from 1 in the order of their cell, because some data sets number repetitions from 0.
HALVES = ("even runs left out", "odd runs left out")
MODEL = "ioncast"
NEAREST = "nearest benchmark"
FLOOR = "noise floor"


@dataclass(frozen=True)
class Judged:
    """A pattern predicted in one way, and compared with its own runs.

    Attributes
    ----------
    protocol, way : str
        The measurements that were held back, and the way of predicting them.
    pattern : str
        Name of the pattern.
    best : int or None
        Number of I/O nodes that is predicted best; None without a prediction.
    measured_best : int
        Number of I/O nodes with the highest measured mean.
    comparison : Comparison
        The prediction compared with the runs; empty without a prediction.
    """

    protocol: str
    way: str
    pattern: str
    best: int | None
    measured_best: int
    comparison: Comparison


def hold_back(known: Mapping[str, Curve]) -> Iterator[Judged]:
    """Predict each pattern from all others, and half of the runs from the other half.

    There are three ways: the prediction that users get, the nearest benchmark without a model
    (as in Inria RR-9366), and the same number of I/O nodes for all. The noise floor stands beside
    them (see `predictor.validation.against_reruns.noise_floor`).

    Parameters
    ----------
    known : mapping of str to Curve
        Measured curves, by name of their pattern.
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
    """Make the phase that the Darshan log of a configuration's run would show.

    Parameters
    ----------
    config : IorConfig
        The configuration.
    moved_bytes : int, optional
        Bytes of all processes; by default those of the configuration.
    start_s, time_s : float
        Start and duration of the phase in seconds.

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
        fsync=config.fsync if config.write else "none",
        order=config.order,
        block_requests=config.requests_per_block,
    )


def _ways(curves: tuple[Curve, ...]) -> dict[str, SystemModel]:
    """Knowledge with and without a model of the curves, by name of the way."""
    model = fit_model(curves) if curves else None
    return {MODEL: SystemModel(curves, model), NEAREST: SystemModel(curves)}


def _predicted(
    protocol: str, ways: Mapping[str, SystemModel], name: str, curve: Curve
) -> Iterator[Judged]:
    """Predict a curve in each way, and compare with its runs."""
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
    """Compare the runs with each other, and with the same number of I/O nodes for all patterns."""
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
    """Split each cell: every second run from `first`, or a single run; and the other runs."""
    cells = curve.bandwidths_mib_s
    known = {n: runs[first::2] or runs for n, runs in cells.items()}
    rest = {n: runs[1 - first :: 2] for n, runs in cells.items() if len(runs) > 1}
    return replace(curve, bandwidths_mib_s=known), replace(curve, bandwidths_mib_s=rest)
