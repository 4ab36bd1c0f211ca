"""Trying other numbers: what is worth it, and what it may cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.model.trying import worth_trying

COUNT = 4


def draws(means: list[float], deviations: list[float], seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return 100 * np.exp(random.normal(means, deviations, (1000, len(means))))


def test_of_equal_costs_that_is_tried_which_may_be_better() -> None:
    found = worth_trying(draws([0, -0.1, -0.1], [0.02, 0.02, 0.3]), [0.1] * 3, 0, range(3), 0.01)
    assert found is not None
    assert found.place == 2
    # E exp(x) of a normal distribution is exp(mean + variance / 2).
    assert found.loss == pytest.approx(1 - math.exp(-0.1 + 0.3**2 / 2), abs=0.03)
    assert found.jobs == pytest.approx(0.01 / found.loss)


def test_the_gain_is_that_of_the_knowledge_gradient() -> None:
    """Frazier: s·(z·Φ(z) + φ(z)) with z = -|difference| / s, for two independent numbers."""
    found = worth_trying(draws([0, -0.1], [1e-6, 0.3]), [0.1, 0.1], 0, [0, 1], 0.01)
    assert found is not None
    move = 0.3**2 / math.hypot(0.3, 0.1)
    z = -0.1 / move
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(z / math.sqrt(2))) / 2
    assert found.gain == pytest.approx(move * (z * below + density), rel=0.15)


def test_a_number_that_cannot_be_better_or_costs_too_much_is_not_tried() -> None:
    for means, deviations in (([0, -0.2], [0.02, 0.02]), ([0, -1.0], [0.02, 0.3])):
        assert worth_trying(draws(means, deviations), [0.1, 0.1], 0, [0, 1], 0.01) is None
    assert worth_trying(draws([0.0], [0.3]), [0.1], 0, [0], 0.01) is None


def test_a_number_that_the_job_may_not_get_is_not_tried() -> None:
    expected = draws([0, -0.1, 0], [0.02, 0.2, 0.5])
    found = worth_trying(expected, [0.1] * 3, 0, [0, 1], 0.01)
    assert found is not None
    assert found.place == 1


@given(
    means=st.lists(st.floats(-1, 1), min_size=COUNT, max_size=COUNT),
    deviations=st.lists(st.floats(1e-6, 1), min_size=COUNT, max_size=COUNT),
    explore=st.floats(1e-4, 0.5),
    chosen=st.integers(0, COUNT - 1),
)
def test_the_mean_expected_loss_is_at_most_what_may_be_explored(
    means: list[float], deviations: list[float], explore: float, chosen: int
) -> None:
    found = worth_trying(draws(means, deviations), [0.1] * COUNT, chosen, range(COUNT), explore)
    if found is not None:
        assert found.place != chosen
        assert 0 < found.jobs <= 0.25
        assert found.jobs * found.loss <= explore * (1 + 1e-9)
        assert found.loss <= 0.3
