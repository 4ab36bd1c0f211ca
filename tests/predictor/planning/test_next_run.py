"""The run that teaches most, beside brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.model.gaussian import Array, Posterior
from predictor.planning.next_run import (
    after_run,
    expected_regret,
    gains_of_certainty,
    gains_of_decisions,
    next_cell,
    order_of_curves,
)

NUMBERS = 3
HOURS = np.array([1.0, 4.0])


def a_belief(seed: int = 0, configs: int = 2) -> Posterior:
    """A belief about some configurations with three numbers of I/O nodes, all correlated."""
    random = np.random.default_rng(seed)
    count = configs * NUMBERS
    root = random.normal(0, 0.3, (count, count))
    return Posterior(random.normal(0, 0.2, count), root @ root.T, random.uniform(0.01, 0.1, count))


def drawn(belief: Posterior, count: int) -> Array:
    random = np.random.default_rng(1)
    found: Array = random.multivariate_normal(belief.mean, belief.covariance, count)
    return found


def test_the_gain_of_decisions_is_that_of_all_results_by_their_likelihood() -> None:
    belief = a_belief()
    before = HOURS @ belief.mean.reshape(2, NUMBERS).max(axis=1)
    deviations = np.linspace(-8, 8, 4_001)
    likelihood = np.exp(-(deviations**2) / 2)
    expected = []
    for cell in range(len(belief.mean)):
        spread = np.sqrt(belief.covariance[cell, cell] + belief.noise[cell])
        results = belief.mean[cell] + spread * deviations
        after = np.array([after_run(belief, cell, result).mean for result in results])
        best = after.reshape(-1, 2, NUMBERS).max(axis=2) @ HOURS
        expected.append(np.average(best, weights=likelihood) - before)
    # Eight points see a bend of the best bandwidth only roughly, which suffices to rank cells.
    assert gains_of_decisions(belief, HOURS) == pytest.approx(expected, abs=0.1 * max(expected))


def test_the_gain_of_certainty_is_the_variance_that_a_run_removes() -> None:
    belief = a_belief()
    hours = np.repeat(HOURS, NUMBERS)
    for cell, gain in enumerate(gains_of_certainty(belief, HOURS)):
        after = after_run(belief, cell, 1.0)
        removed = np.diag(belief.covariance) - np.diag(after.covariance)
        assert gain == pytest.approx(hours @ removed)


def test_runs_one_by_one_tell_the_same_as_all_at_once() -> None:
    belief = a_belief()
    cells, values = [0, 4, 4], [0.3, -0.2, 0.1]
    after = belief
    for cell, value in zip(cells, values, strict=True):
        after = after_run(after, cell, value)
    across = belief.covariance[:, cells]
    together = belief.covariance[np.ix_(cells, cells)] + np.diag(belief.noise[cells])
    gain = across @ np.linalg.inv(together)
    assert after.mean == pytest.approx(belief.mean + gain @ (values - belief.mean[cells]))
    assert after.covariance == pytest.approx(belief.covariance - gain @ across.T)


def test_a_run_that_has_only_begun_changes_doubts_and_no_mean() -> None:
    belief = a_belief()
    begun = after_run(belief, 0)
    assert begun.mean.tolist() == belief.mean.tolist()
    assert begun.covariance == pytest.approx(after_run(belief, 0, 2.0).covariance)


def test_the_expected_regret_is_that_of_many_truths_drawn_at_random() -> None:
    belief = a_belief()
    truths = drawn(belief, 100_000).reshape(-1, 2, NUMBERS)
    chosen = belief.mean.reshape(2, NUMBERS).argmax(axis=1)
    lost = 1 - np.exp(truths[:, [0, 1], chosen] - truths.max(axis=2))
    assert expected_regret(belief, HOURS) == pytest.approx(
        np.average(lost.mean(axis=0), weights=HOURS), abs=0.01
    )


def test_a_known_best_number_has_no_regret() -> None:
    belief = Posterior(np.array([0.0, 1.0]), np.diag([1e-6, 1e-6]), np.ones(2))
    assert expected_regret(belief, np.ones(1)) == pytest.approx(0, abs=1e-9)


@given(st.integers(0, 50), st.lists(st.booleans(), min_size=6, max_size=6), st.integers(0, 3))
def test_only_a_cell_that_may_run_is_chosen(seed: int, may_run: list[bool], turn: int) -> None:
    allowed = np.array(may_run)
    cell = next_cell(a_belief(seed), HOURS, np.ones(6), turn, allowed)
    assert (cell is None) == (not allowed.any())
    assert cell is None or allowed[cell]


def test_of_two_equal_cells_the_shorter_run_is_chosen() -> None:
    belief = Posterior(np.zeros(2), np.eye(2), np.full(2, 0.1))
    for turn in (0, 1):
        assert next_cell(belief, np.ones(1), np.array([2.0, 1.0]), turn, np.ones(2) > 0) == 1


def test_a_curve_like_the_one_before_comes_after_a_different_one() -> None:
    # The first two configurations are almost the same; the third is worth a little less.
    alike = np.array([[1, 0.99, 0], [0.99, 1, 0], [0, 0, 1]])
    belief = Posterior(np.zeros(6), np.kron(alike, np.eye(2)), np.full(6, 0.01))
    order = order_of_curves(belief, np.array([1.1, 1.0, 0.9]), np.ones(3), 2)
    assert order in ([0, 2, 1], [1, 2, 0])


def test_every_configuration_is_in_the_order_once() -> None:
    belief = a_belief(configs=40)
    order = order_of_curves(belief, np.ones(40), np.ones(40), 2)
    assert sorted(order) == list(range(40))
