"""The benchmark of accuracy judges forecasts: errors, choices, groups and bootstrap intervals."""

from __future__ import annotations

import math
from random import Random

import pytest

from benchmarks.judging import (
    GROUPINGS,
    Forecast,
    by_group,
    estimate,
    interpolated,
    judge,
    of_means,
    p95,
    score,
    scores_of_groups,
)
from ior_configs import IorConfig

SMALL = IorConfig.from_command_line("ior -w -b 4m -t 64k")
LARGE = IorConfig.from_command_line("ior -w -F -b 4m -t 1m")
# The means are 100, 200 and 150.
RUNS = {0: (90.0, 110.0), 1: (200.0, 200.0), 8: (150.0, 150.0)}
FORECAST = Forecast(
    means={0: 110.0, 1: 150.0, 8: 165.0},
    intervals={0: (100.0, 120.0), 1: (140.0, 210.0), 8: (160.0, 170.0)},
    best=8,
    decision=1,
)


def test_the_best_and_the_decision_have_regrets_of_their_own() -> None:
    found = score([judge(SMALL, FORECAST, RUNS)])

    assert found.regret is not None and found.decision_regret is not None
    assert found.regret.value == pytest.approx(0.25)
    assert found.decision_regret.value == 0
    assert found.hit is not None and found.hit.value == 0


def test_errors_are_of_the_means_and_of_the_runs() -> None:
    found = score([judge(SMALL, FORECAST, RUNS)])

    assert found.cell_error is not None and found.run_error is not None
    assert found.cell_error.value == pytest.approx((0.1 + 0.25 + 0.1) / 3)
    assert found.run_error.value == pytest.approx((20 / 90 + 0 + 0.25 + 0.25 + 0.1 + 0.1) / 6)
    assert found.coverage is not None and found.coverage.value == pytest.approx(3 / 6)


def test_only_some_cells_are_compared_but_choices_are_among_all() -> None:
    [cell] = judge(SMALL, FORECAST, RUNS, only=(0,)).cells
    found = score([judge(SMALL, FORECAST, RUNS, only=(0,))])

    assert cell.errors == pytest.approx((0.1,))
    assert found.regret is not None and found.regret.value == pytest.approx(0.25)


def test_a_pattern_without_a_forecast_counts_as_asked_only() -> None:
    found = score([judge(SMALL, None, RUNS), judge(LARGE, FORECAST, RUNS)])

    assert (found.asked, found.forecasts) == (2, 1)
    assert found.cells == 3


@pytest.mark.slow
def test_groups_split_cells_and_put_the_choice_where_the_best_cell_is() -> None:
    judged = [judge(SMALL, FORECAST, RUNS), judge(LARGE, FORECAST, RUNS)]

    by_io_nodes = by_group(judged, GROUPINGS["I/O nodes"])
    assert {name: score(group).cells for name, group in by_io_nodes.items()} == {
        "0 (direct access)": 2,
        "1": 2,
        "8": 2,
    }
    assert [name for name, group in by_io_nodes.items() if score(group).regret] == ["1"]
    by_request = by_group(judged, GROUPINGS["request"])
    assert {name: score(group).patterns for name, group in by_request.items()} == {
        "below 128 KiB": 1,
        "128 KiB and more": 1,
    }


def test_two_modes_are_a_group_of_cells() -> None:
    runs = {**RUNS, 8: (10.0, 10.1, 10.2, 150.0, 151.0, 152.0)}

    groups = by_group([judge(LARGE, FORECAST, runs)], GROUPINGS["modes"])

    assert {name: score(group).cells for name, group in groups.items()} == {
        "one mode": 2,
        "bimodal": 1,
    }


@pytest.mark.slow
def test_a_group_needs_compared_cells_and_enough_patterns_to_be_judged() -> None:
    configs = [IorConfig.from_command_line(f"mpiexec -n {n} ior -w -t 1m") for n in range(1, 11)]

    groups = scores_of_groups([judge(config, FORECAST, RUNS, only=(0,)) for config in configs])

    assert list(groups["I/O nodes"]) == ["0 (direct access)"]
    assert groups["request"]["128 KiB and more"].is_enough
    assert not groups["processes"]["4"].is_enough


def test_an_application_is_in_no_group() -> None:
    assert by_group([judge("hacc-io", FORECAST, RUNS)], GROUPINGS["layout"]) == {}


def test_an_interval_of_means_is_as_wide_as_the_normal_distribution_says() -> None:
    random = Random(1)
    values = [[random.gauss(10, 2)] for _ in range(400)]

    found = estimate(values)

    # Twice 1.96 standard errors of 2 / sqrt(400). The sample's own deviation differs by chance.
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.1, rel=0.15)


def test_repetitions_of_a_pattern_do_not_make_an_interval_narrower() -> None:
    once = estimate([[1.0], [2.0], [3.0], [10.0]])
    often = estimate([[1.0] * 50, [2.0] * 50, [3.0] * 50, [10.0] * 50])

    assert once == often


def test_one_pattern_has_no_interval_and_no_pattern_has_no_estimate() -> None:
    alone = estimate([[1.0, 3.0], []])

    assert alone is not None
    assert (alone.value, alone.low, alone.high) == (2.0, None, None)
    assert estimate([[]]) is None


def test_a_percentile_has_an_interval_too() -> None:
    found = estimate([[i / 100] for i in range(101)], p95)

    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(0.95)
    assert 0.85 < found.low < 0.95 < found.high <= 1


def test_interpolation_is_linear_in_logarithms() -> None:
    means = interpolated({0: 7.0, 1: 100.0, 4: 400.0, 8: 500.0}, 2)

    assert means[2] == pytest.approx(math.sqrt(100 * 400))
    assert of_means(means) is not None


@pytest.mark.parametrize("io_nodes", [1, 16])
def test_interpolation_needs_a_neighbour_on_both_sides(io_nodes: int) -> None:
    assert interpolated({0: 7.0, 2: 200.0, 8: 500.0}, io_nodes) == {}
    assert of_means({}) is None
