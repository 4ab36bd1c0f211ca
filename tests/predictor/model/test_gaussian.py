"""The Gaussian process, compared with scikit-learn's, with refitting, and with known limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from predictor.model.gaussian import Hyperparameters, Posterior, condition

# One component without a trend: scikit-learn has the same kernel.
LENGTHS = np.array([0.7, 2.0])
PLAIN = Hyperparameters(
    centre=np.array([3.0, -1.0]),
    scale=np.array([2.0, 0.5]),
    offset=5.0,
    spread=1.5,
    trend=np.zeros(2),
    weights=np.array([0.8]),
    lengths=np.array([[1.0, 1.0], LENGTHS]),
    noise=np.array([-3.0, 0.4, -0.2]),
    residual=0.01,
)
RICH = replace(
    PLAIN,
    trend=np.array([0.5, 0.1]),
    weights=np.array([0.8, 0.3]),
    lengths=np.array([[3.0, 4.0], LENGTHS, [5.0, 0.4]]),
)


def measured(repetitions: int, *, cells: int = 12, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = np.repeat(random.normal(size=(cells, 2)), repetitions, axis=0)
    y = 5 + np.sin(x[:, 0]) + x[:, 1] + random.normal(scale=0.3, size=len(x))
    return x, y


def peer(x: np.ndarray, y: np.ndarray, alpha: np.ndarray) -> GaussianProcessRegressor:
    """Make scikit-learn's process with the hyperparameters of `PLAIN`, on standardised data."""
    kernel = ConstantKernel(PLAIN.weights[0], "fixed") * Matern(LENGTHS, "fixed", nu=1.5)
    process = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None)
    return process.fit(PLAIN.standardise(x), (y - PLAIN.offset) / PLAIN.spread)


def expected(process: GaussianProcessRegressor, places: np.ndarray) -> tuple[np.ndarray, ...]:
    mean, covariance = process.predict(PLAIN.standardise(places), return_cov=True)
    covariance += PLAIN.residual * np.eye(len(places))
    return PLAIN.offset + PLAIN.spread * mean, PLAIN.spread**2 * covariance


def test_predictions_from_single_runs_are_those_of_scikit_learn() -> None:
    x, y = measured(repetitions=1)
    usual = np.exp(PLAIN.noise[0] + PLAIN.standardise(x) @ PLAIN.noise[1:])
    places = np.random.default_rng(2).normal(size=(5, 2))
    mean, covariance = expected(peer(x, y, usual + PLAIN.residual), places)
    found = condition(PLAIN, x, y).posterior(places)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-7, atol=1e-10)


def test_predictions_from_repetitions_are_those_of_scikit_learn_from_every_run() -> None:
    """The usual noise counts like six repetitions, beside the scatter of a cell."""
    repetitions = 4
    x, y = measured(repetitions)
    standard = replace(PLAIN, residual=0.0)
    usual = np.exp(PLAIN.noise[0] + PLAIN.standardise(x) @ PLAIN.noise[1:])
    runs = ((y - PLAIN.offset) / PLAIN.spread).reshape(-1, repetitions)
    scatter = np.repeat(np.sum((runs - runs.mean(axis=1)[:, None]) ** 2, axis=1), repetitions)
    noise = (6 * usual + scatter) / (6 + repetitions - 1)
    places = x[::repetitions]
    mean, covariance = expected(peer(x, y, noise), places)
    found = condition(standard, x, y).posterior(places)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    doubt = covariance - PLAIN.spread**2 * PLAIN.residual * np.eye(len(places))
    np.testing.assert_allclose(found.covariance, doubt, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.noise, PLAIN.spread**2 * noise[::repetitions])


@pytest.mark.parametrize("parameters", [PLAIN, RICH])
@pytest.mark.parametrize("groups", [range(12), [0, 1] * 6, [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3, 4]])
def test_leaving_cells_out_is_never_having_measured_them(
    parameters: Hyperparameters, groups: list[int]
) -> None:
    x, y = measured(repetitions=3)
    process = condition(parameters, x, y)
    labels = np.array(groups)
    found = process.leave_out(labels)
    cell_of_run = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
    places = np.unique(x, axis=0)
    for group in set(groups):
        [members] = np.nonzero(labels == group)
        kept = labels[cell_of_run] != group
        again = condition(parameters, x[kept], y[kept]).posterior(places[members])
        np.testing.assert_allclose(found.mean[members], again.mean, rtol=1e-8)
        block = found.covariance[np.ix_(members, members)]
        np.testing.assert_allclose(block, again.covariance, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.noise[members], again.noise)


def test_the_noise_far_beyond_the_measurements_is_that_at_their_edge() -> None:
    """Without that rule, the slope of its logarithm would make it arbitrarily large or small."""
    x, y = measured(repetitions=3)
    process = condition(PLAIN, x, y)
    edge = np.array([[x[:, 0].max(), x[:, 1].min()]])
    beyond = edge + np.array([[1e6, -1e6]])
    usual = np.exp(PLAIN.noise[0] + PLAIN.standardise(edge) @ PLAIN.noise[1:])
    np.testing.assert_allclose(process.posterior(beyond).noise, PLAIN.spread**2 * usual)


def at_the_middle(repetitions: int, scatter: float) -> Posterior:
    """Predict a cell with a mean of 2 between six cells that agree on 1."""
    places = np.arange(-3.0, 4.0)
    x, y = places[places != 0], np.ones(6)
    own = 2 + scatter * np.linspace(-1, 1, repetitions)
    parameters = Hyperparameters(
        centre=np.zeros(1),
        scale=np.ones(1),
        offset=1.5,
        spread=1.0,
        trend=np.zeros(1),
        weights=np.ones(1),
        lengths=np.full((2, 1), 3.0),
        noise=np.array([np.log(0.1), 0.0]),
        residual=0.001,
    )
    runs = np.concatenate([x, np.zeros(repetitions)])[:, None]
    return condition(parameters, runs, np.concatenate([y, own])).posterior(np.zeros((1, 1)))


def test_a_noisy_cell_is_drawn_to_neighbours_that_agree_and_a_well_known_one_hardly() -> None:
    noisy, known = at_the_middle(2, scatter=0.8), at_the_middle(200, scatter=0.05)
    assert 1 < noisy.mean[0] < 1.5
    assert 1.9 < known.mean[0] < 2


def test_repetitions_shrink_the_doubt_but_not_the_noise() -> None:
    doubts = [at_the_middle(count, scatter=0.0).covariance[0, 0] for count in (1, 2, 5, 50)]
    assert doubts == sorted(doubts, reverse=True)
    assert doubts[-1] < doubts[0] / 4
    values = 2 + np.sqrt(0.1) * np.resize([-1, 1], 400)
    spread_out = at_the_middle(400, scatter=np.sqrt(0.3))
    assert np.var(values) == pytest.approx(0.1)
    assert spread_out.noise[0] == pytest.approx(0.1, rel=0.02)


def test_a_cell_keeps_its_own_scatter_and_what_was_never_measured_has_the_usual_one() -> None:
    x, y = np.repeat([[0.0, 0.0]], 50, axis=0), np.resize([4.0, 6.0], 50)
    process = condition(replace(PLAIN, centre=np.zeros(2), scale=np.ones(2)), x, y)
    found = process.posterior(np.array([[0.0, 0.0], [0.0, 1e-9]]))
    usual = PLAIN.spread**2 * np.exp(PLAIN.noise[0])
    # The usual noise counts like 6 of 55 repetitions; the sum of squares of the 50 runs is 50.
    assert found.noise == pytest.approx([(6 * usual + 50) / 55, usual])


def test_far_from_all_measurements_the_doubt_is_the_whole_variance() -> None:
    x, y = measured(repetitions=2)
    found = condition(PLAIN, x, y).posterior(np.array([[1e6, 1e6]]))
    assert found.mean == pytest.approx([PLAIN.offset])
    assert found.covariance[0, 0] == pytest.approx(PLAIN.spread**2 * (0.8 + PLAIN.residual))


def test_the_order_of_measurements_does_not_matter() -> None:
    x, y = measured(repetitions=3)
    order = np.random.default_rng(3).permutation(len(y))
    places = x[::5]
    there = condition(RICH, x, y).posterior(places)
    back = condition(RICH, x[order], y[order]).posterior(places)
    np.testing.assert_allclose(there.mean, back.mean, rtol=1e-12)
    np.testing.assert_allclose(there.covariance, back.covariance, rtol=1e-9, atol=1e-12)


def test_predictions_from_a_thousand_cells_are_those_of_scikit_learn() -> None:
    """These are more cells than fit into one block of a matrix."""
    x, y = measured(repetitions=1, cells=1000)
    usual = np.exp(PLAIN.noise[0] + PLAIN.standardise(x) @ PLAIN.noise[1:])
    places = np.random.default_rng(2).normal(size=(7, 2))
    mean, covariance = expected(peer(x, y, usual + PLAIN.residual), places)
    found = condition(PLAIN, x, y).posterior(places)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6, atol=1e-9)


def test_cells_that_are_almost_equal_and_without_noise_can_be_predicted_from() -> None:
    silent = replace(PLAIN, residual=0.0, noise=np.array([-1000.0, 0.0, 0.0]))
    x = np.repeat([[3.0, -1.0], [4.0, -1.0]], 100, axis=0)
    x[:, 0] += 1e-9 * np.arange(200)
    y = np.repeat([4.0, 6.0], 100)
    found = condition(silent, x, y).posterior(np.array([[3.0, -1.0], [4.0, -1.0]]))
    assert found.mean == pytest.approx([4.0, 6.0], abs=1e-3)
    assert np.diag(found.covariance) == pytest.approx([0.0, 0.0], abs=1e-6)
