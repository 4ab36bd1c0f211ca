"""The belief about the cells that a campaign may measure, from few or no measurements.

A prediction needs a model that was fitted to many measurements. A campaign that starts with an
empty database needs doubts about all cells at once, so sizes that no run has had yet count too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.matching.nearest import SIZES
from predictor.model.features import (
    BEFORE_CHANGE,
    FEATURES,
    FLAGS,
    pattern,
    with_io_nodes,
)
from predictor.model.fitting import differing_features, usual_sizes
from predictor.model.gaussian import Hyperparameters, Posterior, condition, covariance, noise_at
from predictor.model.likelihood import most_likely, standardising, unpacked
from predictor.model.priors import Prior, learned
from predictor.model.system_model import measurements
from predictor.planning.needs import GUESSED_MIB_S

Array = NDArray[np.float64]
PriorOfFeatures = Callable[..., Prior]

# With fewer runs, the hyperparameters are those of the prior.
FEWEST_RUNS = 10
# Bandwidths are expected to differ by a factor e. This counts as so many runs.
_USUAL_SPREAD, _AS_MANY_RUNS = 1.0, 5
_COMPONENTS = 3
_SECONDS_OF_AN_HOUR, _MIB = 3600.0, 1 << 20
# More cells tell little more about hyperparameters.
_MOST_CELLS, _SEED = 300, 9366


@dataclass(frozen=True, eq=False)
class CellPlaces:
    """The features of the cells that may be measured, and of the runs so far.

    Attributes
    ----------
    names : tuple of str
        The features that differ.
    cells : array of shape (n_cells, n_features)
        The cells, in the order of configurations, then of I/O nodes.
    runs : array of shape (n_runs, n_features)
        The runs, of these and of other cells.
    logarithms : array of shape (n_runs,)
        Natural logarithm of each run's MiB/s.
    """

    names: tuple[str, ...]
    cells: Array
    runs: Array
    logarithms: Array


def places_of(
    configs: Sequence[IorConfig], io_nodes: Sequence[int], curves: Sequence[Curve]
) -> CellPlaces:
    """Find the features of the cells of some configurations, and of one engine's measurements.

    Measurements from before a change of the system (`Curve.before_change`) are among the runs.
    """
    of_configs = np.reshape([pattern(config) for config in configs], (-1, len(SIZES) + len(FLAGS)))
    patterns = np.repeat(of_configs, len(io_nodes), axis=0)
    numbers, logarithms = np.tile(io_nodes, len(configs)), np.empty(0)
    if curves:
        rows, measured, logarithms = measurements(curves)
        patterns, numbers = np.concatenate([patterns, rows]), np.concatenate([numbers, measured])
    usual = usual_sizes(patterns)
    known = np.where(np.isnan(patterns), [*usual, *(0.0 for _ in FLAGS)], patterns)
    everything = with_io_nodes(known, numbers)
    differing = differing_features(everything)
    names = tuple(name for name, differs in zip(FEATURES, differing, strict=True) if differs)
    cells, runs = np.split(everything[:, differing], [len(configs) * len(io_nodes)])
    return CellPlaces(names, cells, runs, logarithms)


def learn(places: CellPlaces, prior: PriorOfFeatures = learned) -> Hyperparameters:
    """Learn hyperparameters from the runs so far; of few runs, they are those of the prior.

    Parameters
    ----------
    prior : callable
        One of `predictor.model.priors`.
    """
    everywhere = np.concatenate([places.cells, places.runs])
    unknown = standardising(everywhere, np.zeros(len(everywhere)), _COMPONENTS)
    runs = places.logarithms
    offset = float(runs.mean()) if len(runs) else math.log(GUESSED_MIB_S)
    squares = _AS_MANY_RUNS * _USUAL_SPREAD**2 + float(np.sum((runs - offset) ** 2))
    spread = math.sqrt(squares / (_AS_MANY_RUNS + max(len(runs) - 1, 0)))
    standard = replace(unknown, offset=offset, spread=spread)
    of_features = partial(prior, names=places.names)
    if len(runs) < FEWEST_RUNS:
        return unpacked(standard, of_features(standard).centre)
    some = _runs_of_some_cells(places)
    return most_likely(
        places.runs[some], runs[some], _COMPONENTS, standard=standard, prior=of_features
    )


def _runs_of_some_cells(places: CellPlaces) -> NDArray[np.bool_]:
    """Choose cells at random if there are many: the time to learn grows with the cube of them.

    Cells from after a change of the system come first, because there are few of them.
    """
    cells, cell = np.unique(places.runs, axis=0, return_inverse=True)
    order = np.random.default_rng(_SEED).permutation(len(cells))
    if BEFORE_CHANGE in places.names:
        is_earlier = cells[order, places.names.index(BEFORE_CHANGE)]
        order = order[np.argsort(is_earlier, kind="stable")]
    chosen: NDArray[np.bool_] = np.isin(cell.reshape(-1), order[:_MOST_CELLS])
    return chosen


def is_time_to_learn(runs: int) -> bool:
    """Whether hyperparameters are learned again after a number of runs: after a quarter more."""
    learned_at = FEWEST_RUNS
    while learned_at < runs:
        learned_at += max(learned_at // 4, 1)
    return learned_at == runs


def believed(places: CellPlaces, parameters: Hyperparameters) -> Posterior:
    """Compute the belief about all cells after the runs so far: natural logarithms of MiB/s."""
    if len(places.logarithms):
        return condition(parameters, places.runs, places.logarithms).posterior(places.cells)
    standardised, squared = parameters.standardise(places.cells), parameters.spread**2
    alone = parameters.residual * np.eye(len(standardised))
    return Posterior(
        mean=np.full(len(standardised), parameters.offset),
        covariance=squared * (covariance(parameters, standardised, standardised) + alone),
        noise=squared * noise_at(parameters, standardised),
    )


def hours_of(
    configs: Sequence[IorConfig], application_bytes: Mapping[IorConfig, int], belief: Posterior
) -> Array:
    """Compute the hours that applications spend in the I/O of configurations, by today's choices.

    Without bytes of any application all configurations have the same weight. If only some have
    bytes, the others count as the median of these.
    """
    if not application_bytes:
        return np.ones(len(configs))
    usual = float(np.median(list(application_bytes.values())))
    moved = np.array([application_bytes.get(config, usual) for config in configs])
    best = np.exp(belief.mean.reshape(len(configs), -1).max(axis=1))
    hours: Array = moved / _MIB / best / _SECONDS_OF_AN_HOUR
    return hours
