"""The posterior: Kalman's formulas, and the rules of forgetting, outliers, news and drift."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from predictor.model.posterior import (
    Belief,
    ObservedBandwidth,
    Scatter,
    fitted,
    inverse_root,
    likeness,
    posterior,
    root,
)

IO_NODES = (0, 1, 2, 4, 8)


def parameters(scatter: float, drift: float = 0.0, count: int = len(IO_NODES)) -> Scatter:
    return Scatter(np.full(count, scatter), drift)


def pair(doubt: float, correlation: float) -> Belief:
    """Two bandwidths of 100 MiB/s."""
    together = np.array([[1, correlation], [correlation, 1]])
    return Belief(np.log([100.0, 100.0]), doubt**2 * together)


@pytest.mark.parametrize(
    ("doubt", "noise", "gain"),
    # Kalman's gain: variance of the doubt / (variance of the doubt + variance of the noise).
    [(0.3, 0.3, 0.5), (0.4, 0.2, 0.8), (0.05, 0.5, 0.01), (0.0, 0.3, 0.0)],
)
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_a_run_corrects_by_the_share_of_the_doubt(
    doubt: float, noise: float, gain: float, correlation: float
) -> None:
    outcome = ObservedBandwidth(0, math.log(100) + 0.01)
    after = posterior(pair(doubt, correlation), [outcome], parameters(noise, count=2))
    moved = after.mean - math.log(100)
    assert moved == pytest.approx([0.01 * gain, 0.01 * gain * correlation], abs=1e-4)
    left = max(doubt * math.sqrt(1 - gain), 0.03)
    assert math.sqrt(after.covariance[0, 0]) == pytest.approx(left, abs=1e-3)


def test_a_run_whose_number_was_cut_says_half_as_much() -> None:
    before, scatter = pair(0.3, 0), parameters(0.3, count=2)
    after = posterior(before, [ObservedBandwidth(0, math.log(100) + 0.01, is_cut=True)], scatter)
    gain = 0.3**2 / (0.3**2 + 2 * 0.3**2)
    assert after.mean[0] - math.log(100) == pytest.approx(0.01 * gain)


def test_an_outlier_moves_less_than_its_share() -> None:
    """Student's t with 4 degrees: a run that is 5 deviations off counts as 5 / (4 + 25)."""
    before, scatter = pair(0.3, 0), parameters(0.3, count=2)
    off = 5 * math.sqrt(0.3**2 + 0.3**2)
    after = posterior(before, [ObservedBandwidth(0, math.log(100) + off)], scatter)
    gain = 0.3**2 / (0.3**2 + 0.3**2 * (4 + 25) / 5)
    assert after.mean[0] - math.log(100) == pytest.approx(gain * off)


def test_three_runs_far_off_to_one_side_are_news() -> None:
    before, scatter = pair(0.05, 0.5), parameters(0.1, count=2)
    half, double = (ObservedBandwidth(0, math.log(mib_s)) for mib_s in (50, 200))

    def mean(*outcomes: ObservedBandwidth) -> float:
        return float(np.exp(posterior(before, outcomes, scatter).mean[0]))

    assert mean(half, half) > 90
    assert mean(half, half, half) < 55
    assert mean(half, double, half) > 90


def curve(*mib_s: float) -> Belief:
    shape = 0.05**2 + 0.08**2 * likeness(IO_NODES)
    return Belief(np.log(mib_s), np.ones((5, 5)) * shape)


def outcomes(
    io_nodes: int, mib_s: float, count: int, first_day: int = 0
) -> Sequence[ObservedBandwidth]:
    place = IO_NODES.index(io_nodes)
    return [ObservedBandwidth(place, math.log(mib_s), first_day + day) for day in range(count)]


@pytest.mark.parametrize("with_0", [1, 2, 3, 10, 63])
def test_outcomes_with_another_number_are_not_forgotten(with_0: int) -> None:
    """The benchmarks say 0; ten runs with 8 got 30 MiB/s, and those with 0 get 26."""
    after = posterior(
        curve(30, 20, 24, 27, 27.0),
        [*outcomes(8, 30, 10), *outcomes(0, 26, with_0, first_day=10)],
        parameters(0.08, 0.01),
    )
    expected = np.exp(after.mean)
    assert expected[4] == pytest.approx(30, rel=0.03)
    if with_0 >= 3:
        assert expected.argmax() == 4
        assert expected[0] <= 0.95 * expected[4]


def test_the_level_drifts_but_the_difference_does_not() -> None:
    before = curve(30, 20, 24, 27, 27.0)
    first, later = (
        ObservedBandwidth(4, math.log(27.0), 0.0),
        ObservedBandwidth(4, math.log(30.0), 60.0),
    )
    still, drifting = (
        posterior(before, [first] * 9 + [later], parameters(0.08, drift)) for drift in (0.0, 0.02)
    )
    assert drifting.mean[4] > still.mean[4]
    # The level rises for all.
    assert (drifting.mean > still.mean).all()
    late, latest = (
        posterior(
            before, [first, ObservedBandwidth(4, later.log_mib_s, day)], parameters(0.08, 0.02)
        )
        for day in (60.0, 6000.0)
    )
    assert late.mean == pytest.approx(latest.mean)


@given(
    st.lists(
        st.tuples(st.sampled_from(range(5)), st.floats(-5, 15), st.none() | st.floats(0, 1e4)),
        max_size=30,
    )
)
@example(
    [*[(0, 0.0, None)] * 3, (0, 6.0, None), (0, 15.0, None), (1, 0.0, None)] + 3 * [(0, 0.0, None)]
)
def test_any_outcomes_leave_a_belief(
    found: list[tuple[int, float, float | None]],
) -> None:
    runs = [ObservedBandwidth(*one) for one in found]
    after = posterior(curve(30, 20, 24, 27, 27.0), runs, parameters(0.08, 0.01))
    assert np.isfinite(after.mean).all()
    assert np.linalg.eigvalsh(after.covariance).min() > -1e-9
    # Three outcomes that are off to one side move the level of all, at most by their range.
    assert min(map(math.log, (30, 20, 24, 27))) - 20 < after.mean.min()


def test_roots_are_roots() -> None:
    covariance = np.ones((3, 3)) + np.diag([1.0, 0, 0])
    assert root(covariance) @ root(covariance) == pytest.approx(covariance)
    assert covariance @ inverse_root(covariance) @ inverse_root(covariance) @ covariance == (
        pytest.approx(covariance)
    )


def test_errors_of_shape_are_alike_for_near_numbers_and_not_with_direct_access() -> None:
    found = likeness((0, 1, 2, 8))
    assert found.diagonal().tolist() == [1, 1, 1, 1]
    assert found[0, 1:].tolist() == [0, 0, 0]
    assert found[1, 2] == pytest.approx(math.exp(-0.5))
    assert found[1, 3] == pytest.approx(math.exp(-1.5))


@pytest.mark.parametrize("scatter", [0.05, 0.1, 0.4])
def test_many_outcomes_tell_how_runs_scatter(scatter: float) -> None:
    random = np.random.default_rng(1)
    runs = [
        ObservedBandwidth(place, math.log(100) + scatter * random.standard_t(4), float(day))
        for day, place in enumerate(random.integers(0, 2, 200))
    ]
    usual = parameters(0.1, 0.01, count=2)
    found = fitted(pair(0.3, 0.5), runs, usual)
    # Two factors that are tried are apart by the square root of two.
    assert found.of_runs / scatter == pytest.approx(np.ones(2), rel=0.5)
    assert np.square(found.drift) < scatter**2 / 10
    assert fitted(pair(0.3, 0.5), [], usual) == usual
    after = fitted(pair(0.3, 0.5), runs[:1], usual)
    assert after.of_runs.tolist() == usual.of_runs.tolist()


def test_a_level_that_wanders_drifts_more() -> None:
    random = np.random.default_rng(1)
    level = np.cumsum(0.06 * random.standard_normal(100))
    runs = [
        ObservedBandwidth(0, math.log(100) + each + 0.05 * random.standard_t(4), float(day))
        for day, each in enumerate(level)
    ]
    found = fitted(pair(0.3, 0.5), runs, parameters(0.05, 0.01, count=2))
    assert isinstance(found.drift, float)
    assert 0.03 < found.drift < 0.12
