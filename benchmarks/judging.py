"""Judges predictions by measured runs: errors, choices of I/O nodes, and intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from predictor.composition.decision import fewest_near_best
from predictor.composition.prediction import Prediction

# MiB/s of measured runs by number of I/O nodes.
Runs = Mapping[int, Sequence[float]]


class Forecast(NamedTuple):
    """The prediction of one application, by any way to predict.

    Attributes
    ----------
    means : mapping of int to float
        Expected MiB/s by number of I/O nodes.
    intervals : mapping of int to pair of float, or None
        From p10 to p90; None if the way has no intervals.
    best, decision : int
        The number of I/O nodes that is expected to be best, and the fewest within the tolerance.
    """

    means: Mapping[int, float]
    intervals: Mapping[int, tuple[float, float]] | None
    best: int
    decision: int


class Judged(NamedTuple):
    """A forecast compared with runs; `Score` sums up many of them."""

    cell_errors: list[float]
    run_errors: list[float]
    covered: list[bool]
    regret: float
    frugal_regret: float
    hit: bool


@dataclass(frozen=True)
class Score:
    """Many forecasts of one way.

    Attributes
    ----------
    cell_error : float or None
        Mean over cells of |predicted - mean| / mean of its runs; None if only the choice is
        judged.
    run_error : float or None
        Mean over runs of |predicted - run| / run.
    regret, regret_p95 : float
        1 - mean bandwidth at the predicted best / mean bandwidth at the best; the mean and
        the 95th percentile over forecasts.
    hit : float
        Share of forecasts whose best is the best.
    frugal_regret : float
        Mean regret of the fewest I/O nodes within the tolerance of the predicted best.
    coverage : float or None
        Share of runs between p10 and p90.
    forecasts : int
        Number of forecasts.
    """

    cell_error: float | None
    run_error: float | None
    regret: float
    regret_p95: float
    hit: float
    frugal_regret: float
    coverage: float | None
    forecasts: int


def predicted(prediction: Prediction) -> Forecast:
    """The forecast in a prediction."""
    assert prediction.best.io_nodes is not None  # noqa: S101
    assert prediction.decision.io_nodes is not None  # noqa: S101
    points = {point.io_nodes: point.bandwidth_mib_s for point in prediction.curve}
    return Forecast(
        means={n: point.mean for n, point in points.items()},
        intervals={n: (point.p10, point.p90) for n, point in points.items()},
        best=prediction.best.io_nodes,
        decision=prediction.decision.io_nodes,
    )


def of_means(means: Mapping[int, float]) -> Forecast:
    """A forecast from expected bandwidths, without intervals."""
    return Forecast(
        means=means,
        intervals=None,
        best=fewest_near_best(means, 0),
        decision=fewest_near_best(means),
    )


def scaled(forecast: Forecast, factor: float) -> Forecast:
    return of_means({n: factor * mean for n, mean in forecast.means.items()})


def judge(forecast: Forecast, runs: Runs, without: Collection[int] = ()) -> Judged:
    """Compare a forecast with runs.

    Errors and coverage leave out the numbers of I/O nodes in `without`; choices are among all.
    """
    truth = {n: fmean(values) for n, values in runs.items()}
    counted = [n for n in runs if n not in without]
    pairs = [(n, run) for n in counted for run in runs[n]]
    intervals = forecast.intervals or {}
    highest = max(truth.values())
    return Judged(
        cell_errors=[abs(forecast.means[n] / truth[n] - 1) for n in counted],
        run_errors=[abs(forecast.means[n] / run - 1) for n, run in pairs],
        covered=[intervals[n][0] <= run <= intervals[n][1] for n, run in pairs if n in intervals],
        regret=1 - truth[forecast.best] / highest,
        frugal_regret=1 - truth[forecast.decision] / highest,
        hit=truth[forecast.best] == highest,
    )


def score(judged: Sequence[Judged]) -> Score:
    regrets = [one.regret for one in judged]
    return Score(
        cell_error=_mean(error for one in judged for error in one.cell_errors),
        run_error=_mean(error for one in judged for error in one.run_errors),
        regret=fmean(regrets),
        regret_p95=float(np.percentile(regrets, 95)),
        hit=fmean(one.hit for one in judged),
        frugal_regret=fmean(one.frugal_regret for one in judged),
        coverage=_mean(inside for one in judged for inside in one.covered),
        forecasts=len(judged),
    )


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return fmean(listed) if listed else None
