"""Priors of hyperparameters: weak ones of features, and those learned from a large database."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from predictor.model.features import BEFORE_CHANGE, LARGE_REQUESTS
from predictor.model.gaussian import Array, Hyperparameters

# Priors: mean and standard deviation of normal distributions of the logarithms of hyperparameters
# (the slopes of noise themselves), for standardised features and targets.
_WEAK = {
    "trend": (-3.5, 1.2),
    "lengths": (1.0, 0.9),
    "weights": (-1.5, 1.2),
    "noise": (-4.0, 1.2),
    "slopes": (0.0, 0.3),
    "residual": (-7.0, 1.2),
}
# In few benchmarks request size and bytes per process often grow together. A change of bandwidth is
# more likely due to the request size. These values were chosen over three systems: they lower the
# regret of the smallest one and change nothing on the others.
_OF_FEATURES = {"bytes per process": {"trend": (-7.0, 0.6), "lengths": (1.5, 0.9)}}
# Where large requests are another regime, the rest of their effect is a steeper trend.
_BESIDE_A_JUMP = {"request size": {"trend": (-2.0, 1.2)}}
# With a change of the system the level of all bandwidths changes by a logarithm with this standard
# deviation, and what else differs between cells stays the same with about this correlation: the
# Matérn covariance of 0.3 length scales is 0.9.
_CHANGE_OF_LEVEL, _LENGTHS_OF_CHANGE = 0.5, 0.3
# The standard deviation of learned values: systems differ by about as much as features do.
_LEARNED_WIDTH = 1.2
# Starts and ends of the optimiser are between these bounds.
BOUNDS = (-10.0, 6.0)


class Prior(NamedTuple):
    """Normal distributions of the hyperparameters of a `Likelihood`, as one vector.

    Attributes
    ----------
    centre, width : array
        Means and standard deviations, in the order of `Likelihood`.
    """

    centre: Array
    width: Array


def weak(standard: Hyperparameters, names: Sequence[str] = ()) -> Prior:
    """Make the prior of a system about which nothing else is known.

    Parameters
    ----------
    standard : Hyperparameters
        How features and targets are standardised; its shapes are those of the prior.
    names : sequence of str
        The names of the features; without them all features have the same prior.
    """
    return _vector(_weak(standard, names))


def learned(standard: Hyperparameters, names: Sequence[str]) -> Prior:
    """Make the prior from the hyperparameters of MareNostrum 4, the largest public database.

    Parameters
    ----------
    names : sequence of str
        The names of the features. Those that did not differ there have the `weak` prior.

    References
    ----------
    The measurements are those of FORGE: J. L. Bez et al., Adaptive request scheduling for the I/O
    forwarding layer, Future Generation Computer Systems 2020.
    """
    prior, there = _weak(standard, names), _there()
    scale = np.log(np.where(standard.scale > 0, standard.scale, 1.0))
    spread = np.log(standard.spread)
    for place, name in enumerate(names):
        if name in there.trend:
            trend = there.trend[name] + 2 * (scale[place] - spread)
            prior["trend"][place] = trend, _LEARNED_WIDTH
            prior["lengths"][:, place, 0] = np.subtract(there.lengths[name], scale[place])
            prior["lengths"][:, place, 1] = _LEARNED_WIDTH
    prior["weights"][:, 0] = np.subtract(there.weights, 2 * spread)
    prior["weights"][:, 1] = _LEARNED_WIDTH
    return _vector(prior)


class Learned(NamedTuple):
    """Logarithms of the hyperparameters of a system, in the units of features and targets."""

    trend: Mapping[str, float]
    lengths: Mapping[str, Sequence[float]]
    weights: Sequence[float]


def in_units(parameters: Hyperparameters, names: Sequence[str]) -> Learned:
    """Turn the hyperparameters of a fitted model into what `learned` starts from."""
    scale, spread = np.log(parameters.scale), np.log(parameters.spread)
    trend = np.log(parameters.trend) - 2 * scale + 2 * spread
    lengths = np.log(parameters.lengths) + scale
    weights = np.log(parameters.weights) + 2 * spread
    return Learned(
        dict(zip(names, trend.round(2).tolist(), strict=True)),
        dict(zip(names, lengths.T.round(2).tolist(), strict=True)),
        weights.round(2).tolist(),
    )


@cache
def _there() -> Learned:
    text = files("predictor.model").joinpath("learned.json").read_text(encoding="utf-8")
    return Learned(**json.loads(text))


def _weak(standard: Hyperparameters, names: Sequence[str]) -> dict[str, Array]:
    """Make centres and widths (the last axis) of each kind of hyperparameter."""
    features, components = len(standard.trend), len(standard.weights)
    shapes: dict[str, tuple[int, ...]] = {
        "trend": (features,),
        "lengths": (1 + components, features),
        "weights": (components,),
        "noise": (1,),
        "slopes": (features,),
        "residual": (1,),
    }
    prior = {name: np.tile(_WEAK[name], (*shape, 1)) for name, shape in shapes.items()}
    of_features = _OF_FEATURES | (_BESIDE_A_JUMP if LARGE_REQUESTS in names else {})
    if BEFORE_CHANGE in names:
        of_features = of_features | {BEFORE_CHANGE: _of_change(standard, names)}
    for place, name in enumerate(names):
        for kind, own in of_features.get(name, {}).items():
            prior[kind][..., place, :] = own
    return prior


def _of_change(standard: Hyperparameters, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Make the priors of the feature of earlier runs, in standardised units."""
    scale = float(standard.scale[list(names).index(BEFORE_CHANGE)]) or 1.0
    level = 2 * math.log(_CHANGE_OF_LEVEL * scale / standard.spread)
    length = -math.log(_LENGTHS_OF_CHANGE * scale)
    return {"trend": (level, 1.2), "lengths": (length, 1.2)}


def _vector(prior: Mapping[str, Array]) -> Prior:
    centre, width = np.concatenate([values.reshape(-1, 2) for values in prior.values()]).T
    return Prior(np.clip(centre, *BOUNDS), width)
