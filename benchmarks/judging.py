"""Judges predictions by measured runs: errors, choices of I/O nodes, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.stats import bootstrap

from benchdb.measurements.cells import bimodal
from ior_configs import IorConfig
from predictor.curve.decision import fewest_near_best
from predictor.curve.prediction import DecisionRules, Prediction
from predictor.validation.against_reruns import Reruns, error, mean_of_cells

RESAMPLES = 1_000
SEED = 9366
# Fewer patterns do not tell how good the predictions of a group are.
FEWEST_PATTERNS = 10
SMALL_REQUEST = 128 << 10
# The defaults of the sites whose answers are judged.
DEFAULTS = (0, 8)


@dataclass(frozen=True)
class Forecast:
    """The prediction of one application, by any way to predict.

    Attributes
    ----------
    means : mapping of int to float
        Expected MiB/s by number of I/O nodes.
    intervals : mapping of int to pair of float
        From p10 to p90; empty if the way has no intervals.
    best : int
        The number of I/O nodes that is expected to be best.
    decision : int or None
        The answer to the scheduler, however sure it is; None without a basis.
    site_answers : mapping of int to SiteAnswer
        The answers by the default of a site that asks for the usual confidence; empty if the way
        tells no probability.
    """

    means: Mapping[int, float]
    intervals: Mapping[int, tuple[float, float]]
    best: int
    decision: int | None
    site_answers: Mapping[int, SiteAnswer] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteAnswer:
    """The answer to the scheduler of a site: a number, and whether it is the site's default."""

    io_nodes: int
    is_default: bool


@dataclass(frozen=True)
class Cell:
    """A forecast compared with the runs of one number of I/O nodes; empty if not compared."""

    io_nodes: int
    bimodal: bool
    errors: tuple[float, ...] = ()
    run_errors: tuple[float, ...] = ()
    inside: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Choice:
    """The choices of a forecast compared with the measured best.

    Attributes
    ----------
    measured_best : Cell
        The cell with the highest measured mean.
    regret : float
        1 - measured mean at the predicted best / highest measured mean.
    decision_regret : float or None
        The same at the decision; None without one.
    site_regrets : mapping of int to pair of float
        By the default of a site: the same at its answer, and 1 if that is the default, else 0.
    hit : bool
        Whether the predicted best is the measured best.
    """

    measured_best: Cell
    regret: float
    decision_regret: float | None
    hit: bool
    site_regrets: Mapping[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """A forecast compared with runs.

    Attributes
    ----------
    pattern : IorConfig or str
        The configuration, or the name of the application.
    cells : tuple of Cell
        The compared cells; empty if only the choice counts, or if there is no forecast.
    choice : Choice or None
        The choices; None if there is no forecast, or if the choice is of another group.
    """

    pattern: IorConfig | str
    cells: tuple[Cell, ...] = ()
    choice: Choice | None = None


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval over patterns; without one if there is only one pattern."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Score:
    """Many forecasts of one way; None where nothing was compared.

    Attributes
    ----------
    patterns, cells, runs : int
        Numbers of patterns, cells and runs that were compared.
    asked, forecasts : int
        Number of predictions that were asked for, and of those with an answer.
    cell_error : Estimate or None
        Mean over cells of |predicted - mean| / mean of its runs.
    run_error : Estimate or None
        Mean over runs of |predicted - run| / run.
    regret, regret_p95, decision_regret, decision_regret_p95 : Estimate or None
        Mean and 95th percentile over forecasts, see `Choice`.
    site_regrets, abstentions : mapping of int to Estimate or None
        By the default of a site: mean regret of its answers, and the share of defaults in them.
    hit : Estimate or None
        Share of forecasts whose best is the best.
    coverage : Estimate or None
        Share of runs between p10 and p90.
    """

    patterns: int
    cells: int
    runs: int
    asked: int
    forecasts: int
    cell_error: Estimate | None
    run_error: Estimate | None
    regret: Estimate | None
    regret_p95: Estimate | None
    decision_regret: Estimate | None
    decision_regret_p95: Estimate | None
    hit: Estimate | None
    coverage: Estimate | None
    site_regrets: Mapping[int, Estimate | None] = field(default_factory=dict)
    abstentions: Mapping[int, Estimate | None] = field(default_factory=dict)

    @property
    def is_enough(self) -> bool:
        """Whether there are enough patterns to judge by."""
        return self.patterns >= FEWEST_PATTERNS


# A property of a cell in words, by which cells and choices are grouped.
Grouping = Callable[[IorConfig, Cell], str]

GROUPINGS: dict[str, Grouping] = {
    "I/O nodes": lambda _, cell: str(cell.io_nodes) if cell.io_nodes else "0 (direct access)",
    "layout": lambda config, _: f"{config.operation}, {config.file_access}, {config.spatiality}",
    "request": lambda config, _: (
        "below 128 KiB" if config.transfer_size < SMALL_REQUEST else "128 KiB and more"
    ),
    "modes": lambda _, cell: "bimodal" if cell.bimodal else "one mode",
    "processes": lambda config, _: str(config.tasks),
}


def predicted(prediction: Prediction) -> Forecast | None:
    """The forecast in a prediction; None if nothing resembles the application."""
    if prediction.best.io_nodes is None:
        return None
    decide = prediction.choice.decide
    answers = {default: decide(DecisionRules(default=default)) for default in DEFAULTS}
    points = {point.io_nodes: point.bandwidth_mib_s for point in prediction.curve}
    return Forecast(
        means={n: point.mean for n, point in points.items()},
        intervals={n: (point.p10, point.p90) for n, point in points.items()},
        best=prediction.best.io_nodes,
        decision=decide(DecisionRules(min_confidence=0)).io_nodes,
        site_answers={
            default: SiteAnswer(answer.io_nodes, answer.source == "default")
            for default, answer in answers.items()
            if answer.io_nodes is not None
        },
    )


def of_means(means: Mapping[int, float]) -> Forecast | None:
    """A forecast from expected bandwidths, without intervals; None without bandwidths."""
    if not means:
        return None
    return Forecast(means, {}, best=fewest_near_best(means, 0), decision=fewest_near_best(means))


def interpolated(means: Mapping[int, float], io_nodes: int) -> dict[int, float]:
    """Add a number of I/O nodes: linear in log2 of the number, and in the logarithm of MiB/s.

    Empty without a measured neighbour on both sides. Direct access is no neighbour.
    """
    known = sorted(n for n in means if n)
    if not known or not known[0] <= io_nodes <= known[-1]:
        return {}
    logarithms = np.log([means[n] for n in known])
    return {**means, io_nodes: math.exp(np.interp(math.log2(io_nodes), np.log2(known), logarithms))}


def judge(
    pattern: IorConfig | str,
    forecast: Forecast | None,
    runs: Reruns,
    only: Collection[int] | None = None,
) -> Judged:
    """Compare a forecast with runs.

    Errors and coverage are of the numbers of I/O nodes in `only`, by default of all that were
    forecast; choices are among all.
    """
    if forecast is None:
        return Judged(pattern)
    truth = mean_of_cells(runs)
    top = fewest_near_best(truth, 0)
    choice = Choice(
        measured_best=Cell(top, bimodal(runs[top])),
        regret=1 - truth[forecast.best] / truth[top],
        decision_regret=(
            None if forecast.decision is None else 1 - truth[forecast.decision] / truth[top]
        ),
        hit=truth[forecast.best] == truth[top],
        site_regrets={
            default: (1 - truth[answer.io_nodes] / truth[top], float(answer.is_default))
            for default, answer in forecast.site_answers.items()
            if default in truth
        },
    )
    counted = [n for n in runs if n in forecast.means and (only is None or n in only)]
    return Judged(pattern, tuple(_cell(forecast, n, runs[n]) for n in counted), choice)


def score(judged: Sequence[Judged]) -> Score:
    """Sum up forecasts, with bootstrap intervals over patterns."""
    by_pattern: dict[IorConfig | str, list[Judged]] = {}
    for one in judged:
        by_pattern.setdefault(one.pattern, []).append(one)

    def of_cells(values: Callable[[Cell], Iterable[float]]) -> Estimate | None:
        return estimate(
            [
                list(chain.from_iterable(values(cell) for one in ones for cell in one.cells))
                for ones in by_pattern.values()
            ]
        )

    def of_choices(
        value: Callable[[Choice], float | None], statistic: Callable[[Any], float] = np.mean
    ) -> Estimate | None:
        values = [
            [value(one.choice) for one in ones if one.choice is not None]
            for ones in by_pattern.values()
        ]
        known = [[one for one in of_pattern if one is not None] for of_pattern in values]
        return estimate(known, statistic)

    def of_site(default: int, place: int) -> Estimate | None:
        return of_choices(lambda choice: choice.site_regrets.get(default, (None, None))[place])

    return Score(
        patterns=len(by_pattern),
        cells=sum(len(one.cells) for one in judged),
        runs=sum(len(cell.run_errors) for one in judged for cell in one.cells),
        asked=len(judged),
        forecasts=sum(one.choice is not None or bool(one.cells) for one in judged),
        cell_error=of_cells(lambda cell: cell.errors),
        run_error=of_cells(lambda cell: cell.run_errors),
        regret=of_choices(lambda choice: choice.regret),
        regret_p95=of_choices(lambda choice: choice.regret, p95),
        decision_regret=of_choices(lambda choice: choice.decision_regret),
        decision_regret_p95=of_choices(lambda choice: choice.decision_regret, p95),
        hit=of_choices(lambda choice: choice.hit),
        coverage=of_cells(lambda cell: cell.inside),
        site_regrets={default: of_site(default, 0) for default in DEFAULTS},
        abstentions={default: of_site(default, 1) for default in DEFAULTS},
    )


def by_group(judged: Iterable[Judged], grouping: Grouping) -> dict[str, list[Judged]]:
    """Split forecasts of configurations by a property of their cells.

    A choice is in the group of the measured best cell. So the regret by number of I/O nodes is that
    of the patterns for which this number is best.
    """
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        config = one.pattern
        if not isinstance(config, IorConfig):
            continue
        best = {grouping(config, one.choice.measured_best)} if one.choice else set()
        names = [grouping(config, cell) for cell in one.cells]
        for name in dict.fromkeys([*names, *best]):
            cells = [cell for of, cell in zip(names, one.cells, strict=True) if of == name]
            choice = one.choice if name in best else None
            groups.setdefault(name, []).append(replace(one, cells=tuple(cells), choice=choice))
    return groups


def scores_of_groups(judged: Sequence[Judged]) -> dict[str, dict[str, Score]]:
    """Scores by grouping and group; groups without compared cells are left out."""
    found = {
        grouping: {name: score(group) for name, group in sorted(by_group(judged, of).items())}
        for grouping, of in GROUPINGS.items()
    }
    return {
        grouping: {name: one for name, one in groups.items() if one.cells}
        for grouping, groups in found.items()
    }


def estimate(
    values: Iterable[Sequence[float]], statistic: Callable[[Any], float] = np.mean
) -> Estimate | None:
    """Compute a statistic of all values, and its 95 % bootstrap interval over patterns.

    Parameters
    ----------
    values : iterable of sequence of float
        The values of each pattern. A resample takes all values of a pattern or none, because the
        errors of a pattern's cells and runs are alike.
    statistic : callable
        The statistic of an array; by default the mean.

    Returns
    -------
    Estimate or None
        None without values.
    """
    held = [np.asarray(of_pattern, dtype=float) for of_pattern in values if len(of_pattern)]
    if not held:
        return None
    value = float(statistic(np.concatenate(held)))
    if len(held) == 1:
        return Estimate(value)

    def of_resample(indices: Any) -> float:
        return float(statistic(np.concatenate([held[i] for i in indices])))

    low, high = bootstrap(
        (np.arange(len(held)),),
        of_resample,
        vectorized=False,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return Estimate(value, float(low), float(high))


def p95(values: Any) -> float:
    return float(np.percentile(values, 95))


def _cell(forecast: Forecast, io_nodes: int, runs: Sequence[float]) -> Cell:
    expected = forecast.means[io_nodes]
    inside: tuple[bool, ...] = ()
    if io_nodes in forecast.intervals:
        low, high = forecast.intervals[io_nodes]
        inside = tuple(low <= run <= high for run in runs)
    return Cell(
        io_nodes,
        bimodal(runs),
        errors=(error(expected, float(np.mean(runs))),),
        run_errors=tuple(error(expected, run) for run in runs),
        inside=inside,
    )
