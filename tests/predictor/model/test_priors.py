"""Priors: which features have one of their own, and the units of learned ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictor.model.gaussian import Hyperparameters, cells_of
from predictor.model.likelihood import Likelihood, most_likely
from predictor.model.priors import in_units, learned, weak

COMPONENTS = 3


def standard(scale: list[float], spread: float = 1.0) -> Hyperparameters:
    features = len(scale)
    return Hyperparameters(
        centre=np.zeros(features),
        scale=np.array(scale),
        offset=0.0,
        spread=spread,
        trend=np.ones(features),
        weights=np.ones(COMPONENTS),
        lengths=np.ones((1 + COMPONENTS, features)),
        noise=np.zeros(1 + features),
        residual=1.0,
    )


def unpacked(given: Hyperparameters, centre: np.ndarray) -> Hyperparameters:
    """The hyperparameters that are most likely before any measurement."""
    cells = cells_of(np.zeros((1, len(given.scale))), np.zeros(1))
    return Likelihood(given, cells, weak(given)).unpack(centre)


def test_bytes_per_process_have_little_effect_before_any_measurement() -> None:
    given = standard([1.0, 1.0])
    found = unpacked(given, weak(given, ["request size", "bytes per process"]).centre)
    assert found.trend.round(4).tolist() == [round(np.exp(-3.5), 4), round(np.exp(-7.0), 4)]
    assert np.all(found.lengths[:, 1] > 1.5 * found.lengths[:, 0])


def test_the_rest_of_a_jump_is_a_steeper_trend() -> None:
    given = standard([1.0, 1.0])
    alone = unpacked(given, weak(given, ["request size", "processes"]).centre)
    beside = unpacked(given, weak(given, ["request size", "large requests"]).centre)
    assert beside.trend[0] > 4 * alone.trend[0]
    assert beside.trend[1] == alone.trend[1]


@pytest.mark.parametrize("spread", [1.0, 0.5])
def test_learned_values_are_the_same_in_the_units_of_features_and_targets(spread: float) -> None:
    names = ["processes", "request size"]
    here, wider = standard([1.0, 1.0]), standard([2.0, 3.0], spread)
    units = [
        in_units(unpacked(given, learned(given, names).centre), names) for given in (here, wider)
    ]
    assert units[0] == units[1]


def test_a_process_far_from_data_follows_what_was_learned() -> None:
    """A feature with a long learned length changes less from place to place."""
    given = standard([1.0])
    found = unpacked(given, learned(given, ["processes per node"]).centre)
    assert np.all(found.lengths > 1)


def test_features_that_differed_nowhere_keep_the_weak_prior() -> None:
    given = standard([1.0, 1.0])
    names = ["O_DIRECT", "bytes per process"]
    trend = slice(0, 2)
    assert learned(given, names).centre[trend].tolist() == weak(given, names).centre[trend].tolist()
    assert learned(given, names).width[trend].tolist() == weak(given, names).width[trend].tolist()


def test_an_equal_feature_has_a_finite_prior() -> None:
    """A system with one configuration has no feature that differs; its scale is 0."""
    given = replace(standard([1.0]), scale=np.zeros(1))
    assert np.isfinite(learned(given, ["processes"]).centre).all()


def test_the_prior_decides_where_measurements_do_not() -> None:
    """Two equal measurements tell nothing about a trend."""
    x = np.array([[0.0], [1.0]])
    one, other = (
        most_likely(x, np.array([1.0, 1.1]), COMPONENTS, prior=prior, starts=1)
        for prior in (weak, lambda given: learned(given, ["file per process"]))
    )
    assert other.trend[0] != pytest.approx(one.trend[0], rel=0.2)
