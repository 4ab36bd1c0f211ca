"""Estimates as distributions, compared with the definitions of means, normal draws and modes."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from predictor.curve.estimates import Estimate, as_expected, as_measured
from predictor.model.gaussian import Posterior

# HACC-IO with direct access, RR-9366, Table 9.
TABLE_9 = (488.3, 526.2, 331.5, 41971.4, 409.7)
# Variance between an application and its benchmark: 6 %, for each number of I/O nodes separately.
UNLIKE = 0.06**2
# Equally likely deviations of a normal distribution, in standard deviations.
NORMAL = [statistics.NormalDist().inv_cdf((1 + (i + 0.5) / 200) / 2) for i in range(200)]


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def runs(estimate: Estimate, at: int = 0) -> np.ndarray:
    """Draw runs of a single phase."""
    ratio: np.ndarray = np.exp(
        estimate.doubt[:, at] + estimate.run[:, at] + estimate.draw(at, draws(1))
    )
    return ratio * estimate.typical_mib_s[at]


def expectation(mean: list[float], covariance: list[list[float]], noise: list[float]) -> Posterior:
    return Posterior(np.array(mean), np.array(covariance), np.array(noise))


def test_the_typical_bandwidth_is_the_harmonic_mean_because_times_add_up() -> None:
    found = as_measured({0: (10.0, 15.0), 4: (100.0,)}, [4, 0], draws())
    assert found.typical_mib_s == pytest.approx([100, statistics.harmonic_mean([10, 15])])
    assert not found.doubt.any()


def test_runs_of_a_measured_cell_are_its_repetitions() -> None:
    values = (90.0, 100.0, 125.0)
    found = runs(as_measured({0: values}, [0], draws()))
    assert sorted(set(found.round(9))) == pytest.approx(values)
    assert np.mean(1 / found) == pytest.approx(statistics.fmean(1 / v for v in values), rel=0.02)


def test_a_cell_of_two_modes_keeps_both_in_their_shares() -> None:
    estimate = as_measured({0: TABLE_9}, [0], draws())
    # The mode is drawn once for a run, the noise within the mode for each phase.
    fast = estimate.mode[:, 0] == 1
    assert np.mean(fast) == pytest.approx(1 / 5, abs=0.03)
    found = runs(estimate)
    assert set(found[fast].round(1)) == {41971.4}
    assert set(found[~fast].round(1)) == {488.3, 526.2, 331.5, 409.7}


def test_draws_of_a_model_have_its_mean_and_doubt() -> None:
    covariance = [[0.04, 0.03], [0.03, 0.09]]
    expected = expectation([3.0, 4.0], covariance, [0.01, 0.25])
    [found] = as_expected(expected, NORMAL, [{}], [0, 4], draws())
    assert found.typical_mib_s == pytest.approx([math.exp(3), math.exp(4)])
    assert np.cov(found.doubt.T) == pytest.approx(np.array(covariance), rel=0.15)
    assert found.run.var(axis=0) == pytest.approx([UNLIKE, UNLIKE], rel=0.2)
    assert [values.std() for [values] in found.noise] == pytest.approx([0.1, 0.5], rel=0.02)
    assert [values.mean() for [values] in found.noise] == pytest.approx([0, 0], abs=1e-9)
    assert not found.mode.any()


def test_tenths_of_runs_are_those_of_the_normal_distribution() -> None:
    [found] = as_expected(expectation([5.0], [[0.03 - UNLIKE]], [0.01]), NORMAL, [{}], [0], draws())
    tenth, ninetieth = np.percentile(np.log(runs(found)), [10, 90])
    assert (tenth, ninetieth) == pytest.approx((5 - 1.2816 * 0.2, 5 + 1.2816 * 0.2), abs=0.03)


@pytest.mark.parametrize("rounding", [0.0, 1e-17, -1e-17])
def test_doubts_that_go_together_are_drawn_together(rounding: float) -> None:
    """Such a covariance is singular, and rounding may make it not positive semidefinite."""
    covariance = [[100.0, 100.0], [100.0, 100.0 + rounding]]
    [found] = as_expected(
        expectation([5.0, 5.0], covariance, [0, 0]), NORMAL, [{}], [0, 1], draws()
    )
    assert np.corrcoef(found.doubt.T)[0, 1] > 0.999
    assert not np.any(found.noise)


def test_a_measured_cell_of_two_modes_ignores_the_model() -> None:
    expected = expectation([math.log(500), math.log(1000)], [[0.04, 0], [0, 0.04]], [0.01, 0.01])
    steady = (900.0, 1000.0, 1100.0)
    [found] = as_expected(expected, NORMAL, [{0: TABLE_9, 4: steady}], [0, 4], draws())
    assert np.mean(runs(found, 0) > 30_000) == pytest.approx(1 / 5, abs=0.03)
    assert not found.doubt[:, 0].any()
    assert found.typical_mib_s[0] == pytest.approx(statistics.harmonic_mean(TABLE_9))
    assert found.typical_mib_s[1] == pytest.approx(1000)
    assert found.doubt[:, 1].std() == pytest.approx(0.2, rel=0.1)


def test_the_same_draws_give_the_same_estimate() -> None:
    one, other = (as_measured({0: TABLE_9}, [0], draws(5)) for _ in range(2))
    assert np.array_equal(one.mode, other.mode)


def test_rounding_on_another_processor_changes_no_draw() -> None:
    """Equal eigenvalues have no unique eigenvectors, so draws must not depend on their choice."""
    alike = 0.04 * np.eye(4)
    rounded = alike + np.array([[0, 1, 0, 2], [1, 0, 3, 0], [0, 3, 0, 1], [2, 0, 1, 0]]) * 1e-15
    one, other = (
        as_expected(
            expectation([3.0] * 4, covariance.tolist(), [0.01] * 4),
            [0.5, 1.0],
            [{}],
            [0, 1, 2, 4],
            draws(),
        )[0]
        for covariance in (alike, rounded)
    )
    assert other.doubt == pytest.approx(one.doubt, abs=1e-9)
