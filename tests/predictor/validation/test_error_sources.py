"""Litmus tests find the error of a known source under its name, and the parts add up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from ioncast_base.kinds import Kind
from predictor.validation.against_reruns import Expected
from predictor.validation.error_sources import (
    ErrorSources,
    PartForecast,
    errors_by_kind,
    explain,
    find_drift,
    match_shares,
    pool_sources,
    without_drift,
)
from tests.support.examples import examples

DAY = 86400.0


WRITE = Kind("write", "POSIX", "contiguous", "shared")
READ = Kind("read", "POSIX", "contiguous", "shared")


def part(match: str, moved: int = 100, kind: Kind = WRITE, **time_s: float) -> PartForecast:
    return PartForecast(kind, match, moved, {int(n[1:]): time for n, time in time_s.items()})


def at(mean: float) -> Expected:
    return Expected(mean, mean, mean)


def sum_of(found: ErrorSources) -> float:
    parts = (found.noise, found.missing_pattern, found.poor_match, found.drift, found.unexplained)
    return math.fsum(value or 0 for value in parts)


def test_the_error_of_repetitions_against_each_other_is_noise() -> None:
    # Errors against 50 are 10/40 and 10/60, against each other 20/40 and 20/60: all is noise.
    found = explain({0: at(50)}, {0: [40, 60]}, [part("exact", n0=1)])
    assert found is not None
    assert found.total == found.noise == pytest.approx((10 / 40 + 10 / 60) / 2)
    assert found.unexplained == 0


def test_the_rest_of_an_exact_match_is_unexplained() -> None:
    found = explain({0: at(50)}, {0: [100, 100]}, [part("exact", n0=1)])
    assert found is not None
    assert (found.total, found.noise, found.unexplained) == (0.5, 0, 0.5)


@pytest.mark.parametrize(
    ("match", "missing", "poor"),
    [("interpolated", 0, 0.375), ("model", 0.375, 0), ("exact", 0, 0)],
)
def test_the_rest_is_shared_by_predicted_time(match: str, missing: float, poor: float) -> None:
    # The part with this match takes three of four seconds.
    parts = [part(match, n0=3), part("exact", n0=1)]
    found = explain({0: at(50)}, {0: [100, 100]}, parts)
    assert found is not None
    assert (found.missing_pattern, found.poor_match) == (missing, poor)
    assert found.unexplained == pytest.approx(0.5 - missing - poor)


def test_an_unknown_part_has_the_share_of_its_bytes() -> None:
    parts = [part("exact", 300, n0=2), part("unknown", 100)]
    assert match_shares(parts, 0) == pytest.approx({"exact": 0.75, "unknown": 0.25})


def test_without_repetitions_noise_is_not_testable() -> None:
    found = explain({0: at(50), 4: at(50)}, {0: [100], 4: [100]}, [part("exact", n0=1, n4=1)])
    assert found is not None
    assert (found.noise, found.drift, found.unexplained) == (None, None, 0.5)


def test_nothing_predicted_is_nothing_explained() -> None:
    assert explain({}, {0: [1.0]}, [part("unknown")]) is None
    assert pool_sources([]) is None


TIMES = {n: [day * DAY for day in range(8)] for n in (0, 4)}
# The runs begin as predicted and become a tenth slower every day.
SLOWER = {n: [100 * 0.9**day for day in range(8)] for n in (0, 4)}


def test_a_known_drift_is_found() -> None:
    trend = find_drift(SLOWER, TIMES)
    assert trend is not None
    assert trend.change == pytest.approx(0.9**7 - 1)
    assert trend.p_value < 0.001
    steady = without_drift(SLOWER, TIMES, trend)
    assert steady == {n: pytest.approx([100] * 8) for n in (0, 4)}


def test_an_error_that_is_all_drift_is_attributed_to_it() -> None:
    curve = {0: at(100), 4: at(100)}
    found = explain(curve, SLOWER, [part("exact", n0=1, n4=1)], TIMES)
    assert found is not None
    assert found.drift == pytest.approx(found.total)
    assert found.noise == pytest.approx(0)


def test_a_drift_towards_the_prediction_is_not_a_source_of_error() -> None:
    curve = {n: at(100 * 0.9**7) for n in (0, 4)}
    found = explain(curve, SLOWER, [part("exact", n0=1, n4=1)], TIMES)
    assert found is not None
    assert found.trend is not None
    assert found.trend.named
    assert found.drift == 0
    assert sum_of(found) == pytest.approx(found.total)


def test_cells_that_were_measured_on_different_days_are_no_drift() -> None:
    runs = {0: [50.0, 51, 50, 51], 4: [90.0, 91, 90, 91]}
    times = {0: [0, 1, 2, 3], 4: [DAY, DAY + 1, DAY + 2, DAY + 3]}
    trend = find_drift(runs, times)
    assert trend is not None
    assert not trend.named


@pytest.mark.parametrize(
    ("runs", "times"),
    [
        # Of 24 orders, one and its reverse are as steep, so the p-value is at least 0.08.
        ([1.0, 2, 3, 4], [1.0, 2, 3, 4]),
        ([1.0, 2, 3, 4, 5], [7.0] * 5),
        ([1.0], [1.0]),
    ],
)
def test_too_few_runs_or_one_moment_cannot_show_a_drift(
    runs: Sequence[float], times: Sequence[float]
) -> None:
    assert find_drift({0: runs}, {0: times}) is None
    found = explain({0: at(2)}, {0: runs}, [part("exact", n0=1)], {0: times})
    assert found is not None
    assert found.drift is None


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_that_of_all_orders(seed: int) -> None:
    random = np.random.default_rng(seed)
    runs, times = random.lognormal(size=6), random.random(6)
    exact = permutation_test(
        (np.log(runs),),
        lambda values: values @ (times - times.mean()),
        permutation_type="pairings",
        vectorized=False,
    )
    trend = find_drift({0: runs.tolist()}, {0: times.tolist()})
    assert trend is not None
    # The statistic is centred at zero, so both sides count by their distance from zero.
    beyond = np.abs(exact.null_distribution) >= abs(exact.statistic) * (1 - 1e-9)
    assert trend.p_value == pytest.approx(beyond.mean(), abs=0.03)


@pytest.mark.slow
def test_noise_is_named_drift_about_as_seldom_as_promised() -> None:
    random = np.random.default_rng(1)
    trends = [
        find_drift({0: random.lognormal(size=6).tolist()}, {0: random.random(6).tolist()})
        for _ in range(60)
    ]
    assert sum(trend.named for trend in trends if trend) <= 8


@settings(max_examples=examples(15), deadline=None)
@given(
    st.dictionaries(
        st.integers(0, 8),
        st.lists(st.floats(1, 1e4), min_size=1, max_size=5),
        min_size=1,
        max_size=3,
    ),
    st.floats(1, 1e4),
    st.lists(st.sampled_from(["exact", "interpolated", "model"]), min_size=1, max_size=4),
)
def test_the_parts_add_up_to_the_error_and_none_is_negative(
    runs: dict[int, list[float]], mean: float, matches: list[str]
) -> None:
    parts = [PartForecast(WRITE, match, 10, dict.fromkeys(runs, 2.0)) for match in matches]
    times = {n: [float(i * i) for i in range(len(values))] for n, values in runs.items()}
    found = explain({n: at(mean) for n in runs}, runs, [*parts, part("unknown")], times)
    assert found is not None
    assert sum_of(found) == pytest.approx(found.total)
    values = (found.noise, found.missing_pattern, found.poor_match, found.drift)
    assert all(value is None or value >= 0 for value in values)
    assert found.unexplained >= 0


def test_applications_are_pooled_by_their_runs() -> None:
    one = ErrorSources(3, 0.4, 0.1, 0.0, 0.0, None, 0.3)
    other = ErrorSources(1, 0.8, None, 0.4, 0.2, None, 0.2)
    found = pool_sources([one, other])
    assert found is not None
    assert (found.runs, found.total, found.noise) == (4, pytest.approx(0.5), pytest.approx(0.075))
    assert found.drift is None
    assert sum_of(found) == pytest.approx(found.total)


def test_a_rerun_counts_for_each_kind_by_its_share_of_the_time() -> None:
    # One application writes all the time, the other one for one of four seconds.
    found = errors_by_kind(
        [
            ([part("exact", n0=5)], {0: [0.1]}),
            ([part("exact", n0=1), part("exact", kind=READ, n0=3)], {0: [0.5, 0.7]}),
        ]
    )
    assert found == {
        READ: (1.5, pytest.approx(0.6)),
        WRITE: (1.5, pytest.approx((0.1 + 0.25 * 1.2) / 1.5)),
    }
