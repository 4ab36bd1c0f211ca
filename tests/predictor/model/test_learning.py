"""Learning hyperparameters: the likelihood and its gradient, and unusual measurements."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from predictor.model.gaussian import Hyperparameters, Posterior, cells_of, condition
from predictor.model.likelihood import Likelihood, most_likely
from predictor.model.priors import weak


def noisy(seed: int = 0, cells: int = 15, features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Make measurements in cells of one to four repetitions."""
    random = np.random.default_rng(seed)
    places = random.normal(size=(cells, features))
    x = np.repeat(places, random.integers(1, 5, cells), axis=0)
    y = 3 + 2 * np.sin(x[:, 0]) + x[:, -1] + random.normal(scale=0.1, size=len(x))
    return x, y


def standard(features: int, components: int) -> Hyperparameters:
    return Hyperparameters(
        centre=np.zeros(features),
        scale=np.ones(features),
        offset=0.0,
        spread=1.0,
        trend=np.zeros(features),
        weights=np.zeros(components),
        lengths=np.ones((1 + components, features)),
        noise=np.zeros(1 + features),
        residual=0.0,
    )


@pytest.mark.parametrize(("features", "components"), [(1, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_gradient_is_that_of_differences(features: int, components: int, seed: int) -> None:
    given = standard(features, components)
    likelihood = Likelihood(given, cells_of(*noisy(seed, features=features)), weak(given))
    theta = likelihood.draw(np.random.RandomState(seed))
    _, gradient = likelihood.descent(theta)
    differences = approx_fprime(theta, lambda at: likelihood.descent(at)[0], 1e-6)
    np.testing.assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3)


def test_the_likelihood_is_that_of_all_runs_by_themselves() -> None:
    """Mean and scatter of the cells give the same density as all runs by themselves."""
    x, y = noisy(cells=6)
    likelihood = Likelihood(standard(2, 1), cells_of(x, y), weak(standard(2, 1)))
    # Trend, lengths, weights, noise, slopes, residual. The priors cancel in the difference below.
    usual = np.log([0.1, 0.1, 1, 1, 1.5, 0.7, 0.5, 0.01, 1, 1, 1e-4])
    usual[8:10] = 0
    louder = usual.copy()
    louder[7] = np.log(0.05)

    def minus_log_density(theta: np.ndarray) -> float:
        p = likelihood.unpack(theta)
        squares = (x.T[:, :, None] - x.T[:, None, :]) ** 2

        def matern(length: np.ndarray) -> np.ndarray:
            root = np.sqrt(3 * np.tensordot(length**-2.0, squares, 1))
            return (1 + root) * np.exp(-root)

        same = np.all(x[:, None] == x[None], axis=2)
        covariance = (x * p.trend) @ x.T * matern(p.lengths[0])
        covariance += p.weights[0] * matern(p.lengths[1])
        covariance += p.residual * same + np.exp(p.noise[0]) * np.eye(len(y))
        return (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y)) / 2

    centre, width = -4.0, 1.2
    prior = [((theta[7] - centre) / width) ** 2 / 2 for theta in (usual, louder)]
    found = likelihood.descent(louder)[0] - likelihood.descent(usual)[0]
    wanted = minus_log_density(louder) - minus_log_density(usual)
    assert found - (prior[1] - prior[0]) == pytest.approx(wanted, rel=1e-6)


def learned(x: np.ndarray, y: np.ndarray, **told: Any) -> Hyperparameters:
    return most_likely(x, y, 1, **({"starts": 2, "max_iterations": 30} | told))


def predicted(x: np.ndarray, y: np.ndarray, places: np.ndarray) -> Posterior:
    return condition(learned(x, y), x, y).posterior(places)


def test_a_smooth_function_is_learned_between_its_cells() -> None:
    x = np.repeat(np.linspace(0, 6, 13), 3)[:, None]
    y = np.sin(x[:, 0]) + np.random.default_rng(0).normal(scale=0.05, size=len(x))
    between = np.linspace(0.25, 5.75, 12)[:, None]
    found = predicted(x, y, between)
    mean, doubt = found.mean, np.sqrt(np.diag(found.covariance))
    assert np.abs(mean - np.sin(between[:, 0])).max() < 0.15
    assert (np.abs(mean - np.sin(between[:, 0])) / doubt).max() < 3


def test_the_noise_is_learned_where_it_is() -> None:
    random = np.random.default_rng(0)
    x = np.repeat(np.linspace(0, 1, 20), 8)[:, None]
    sigma = 0.02 * 10 ** x[:, 0]
    noise = predicted(x, random.normal(scale=sigma), np.array([[0.01], [0.99]])).noise
    assert np.sqrt(noise) == pytest.approx([0.02, 0.2], rel=0.4)


def same(one: Hyperparameters, other: Hyperparameters) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in fields(Hyperparameters)
    )


def test_the_same_random_state_learns_the_same() -> None:
    x, y = noisy()
    for state in (0, 7):
        one, other = (learned(x, y, random=np.random.RandomState(state)) for _ in range(2))
        assert same(one, other)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6, 3.585])
def test_a_feature_that_never_differs_does_nothing(constant: float) -> None:
    x, y = noisy()
    wide = np.column_stack([x, np.full(len(x), constant)])
    parameters = learned(wide, y)
    without = replace(
        parameters,
        centre=parameters.centre[:2],
        scale=parameters.scale[:2],
        trend=parameters.trend[:2],
        lengths=parameters.lengths[:, :2],
        noise=parameters.noise[:3],
    )
    there = condition(parameters, wide, y).posterior(wide)
    elsewhere = np.column_stack([x, np.full(len(x), constant + 1)])
    moved = condition(parameters, wide, y).posterior(elsewhere)
    narrow = condition(without, x, y).posterior(x)
    for found in (there, moved):
        np.testing.assert_allclose(found.mean, narrow.mean, rtol=1e-9)
        np.testing.assert_allclose(found.covariance, narrow.covariance, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("y", [[5.0], [0.1] * 3, [4.0, 6.0]])
def test_one_cell_is_enough(y: list[float]) -> None:
    places = np.array([[0.3, 0.3], [9.0, -9.0]])
    found = predicted(np.full((len(y), 2), 0.3), np.array(y), places)
    mean, doubt = found.mean, np.sqrt(np.diag(found.covariance))
    assert mean == pytest.approx([np.mean(y)] * 2)
    assert np.isfinite(doubt).all()
    assert (doubt > 0.01).all()
