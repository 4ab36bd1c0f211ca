from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from predictor.curve.composing import Bandwidth, Point
from predictor.curve.decision import Decision, decide, fewest_near_best
from predictor.curve.reasons import Chosen, Defaulted, Unavailable, Unsure

CURVE = {0: 200.0, 1: 100.0, 2: 250.0, 4: 400.0, 8: 412.0}


def points(bandwidths: Mapping[int, float]) -> list[Point]:
    """Make a curve with these expected bandwidths; its percentiles must not affect decisions."""
    return [Point(n, Bandwidth(1.0, 1.0, b, 1e9), 1 / b) for n, b in bandwidths.items()]


def decided(
    bandwidths: Mapping[int, float], expected: Sequence[Sequence[float]] = (), **told: Any
) -> Decision:
    """Decide on a curve; without draws there is no doubt."""
    return decide(points(bandwidths), np.array(expected or [list(bandwidths.values())]), **told)


@pytest.mark.parametrize(
    ("tolerance", "io_nodes"),
    [(0, 8), (0.02, 8), (0.03, 4), (0.05, 4), (0.39, 4), (0.4, 2), (0.52, 0), (0.99, 0)],
)
def test_the_fewest_within_the_tolerance_are_taken(tolerance: float, io_nodes: int) -> None:
    decision = decided(CURVE, tolerance=tolerance)
    assert (decision.io_nodes, decision.source) == (io_nodes, "model")
    assert decision.bandwidth_mib_s == CURVE[io_nodes]
    assert decision.tolerance == tolerance


def test_five_percent_are_given_up_unless_told_otherwise() -> None:
    assert decided({2: 95.0, 4: 100.0}).io_nodes == 2
    assert decided({2: 94.9, 4: 100.0}).io_nodes == 4


def test_direct_access_is_the_fewest() -> None:
    assert decided({8: 100.0, 1: 100.0, 0: 100.0}).io_nodes == 0


def test_of_equals_but_for_rounding_the_fewest_are_taken() -> None:
    assert decided({1: 0.3, 2: 0.1 + 0.2}, tolerance=0).io_nodes == 1


def test_the_order_of_the_curve_does_not_matter() -> None:
    backwards = dict(reversed(CURVE.items()))
    assert decided(backwards) == decided(CURVE)


@pytest.mark.parametrize(
    ("available", "io_nodes"), [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4), (8, 4), (99, 4)]
)
def test_no_more_are_taken_than_are_available(available: int, io_nodes: int) -> None:
    assert decided(CURVE, available=available).io_nodes == io_nodes


def test_exactly_a_tenth_less_is_within_a_tolerance_of_a_tenth() -> None:
    # 0.9 * 13.0 is 11.700000000000001.
    curve = {4: 11.7, 8: 13.0}
    assert decided(curve, tolerance=0.1).io_nodes == fewest_near_best(curve, 0.1) == 4


def test_the_tolerance_is_of_the_best_that_is_available() -> None:
    assert decided({2: 96.0, 4: 100.0, 8: 200.0}, available=4).io_nodes == 2


def test_the_probability_is_the_share_of_draws_within_ten_percent_of_their_best() -> None:
    # 89 of 100 is too little and 90 is enough; in the third draw the chosen number is the best.
    draws = [[89, 100], [90, 100], [100, 50], [10, 100]]
    decision = decided({4: 97.0, 8: 100.0}, draws)
    assert (decision.io_nodes, decision.within_10_percent) == (4, 0.5)


def test_the_probability_compares_with_what_is_available_only() -> None:
    draws = [[50, 40, 900], [50, 60, 900]]
    assert decided({0: 50.0, 2: 49.0, 8: 900.0}, draws, available=2).within_10_percent == 0.5


def test_draws_belong_to_the_points_in_the_order_of_the_curve() -> None:
    decision = decided({8: 100.0, 4: 97.0}, [[100, 89], [100, 95], [100, 99], [100, 50]])
    assert (decision.io_nodes, decision.within_10_percent) == (4, 0.5)


@pytest.mark.parametrize(
    ("bandwidths", "told", "why"),
    [
        (CURVE, {}, "4 I/O nodes give 400 MiB/s, 97% of the best (412 MiB/s with 8 I/O nodes)"),
        (CURVE, {"tolerance": 0}, "8 I/O nodes give the highest expected bandwidth, 412 MiB/s"),
        (
            {0: 98, 1: 100},
            {},
            "direct access gives 98 MiB/s, 98% of the best (100 MiB/s with 1 I/O node)",
        ),
        (
            {4: 99.9, 8: 100},
            {},
            "4 I/O nodes give 99.9 MiB/s, nearly 100% of the best (100 MiB/s with 8 I/O nodes)",
        ),
        ({1: 100, 2: 50}, {}, "1 I/O node gives the highest expected bandwidth, 100 MiB/s"),
        ({4: 50}, {}, "4 I/O nodes give 50 MiB/s; nothing else is known"),
        (
            {0: 50, 4: 100, 8: 130},
            {"available": 4},
            "4 I/O nodes give the highest expected bandwidth available, 100 MiB/s;"
            " 8 would give 30% more, but at most 4 are available",
        ),
        (
            {0: 98, 1: 100, 8: 100.2},
            {"available": 1, "tolerance": 0},
            "1 I/O node gives the highest expected bandwidth available, 100 MiB/s;"
            " 8 would give less than 1% more, but at most 1 is available",
        ),
        (
            {0: 50, 8: 130},
            {"available": 0},
            "direct access gives 50 MiB/s; 8 would give 160% more, but no I/O node is available",
        ),
        (
            {0: 130, 8: 50},
            {"available": 0},
            "direct access gives 130 MiB/s; nothing else available is known",
        ),
        # A limit is not mentioned if it excludes no better number.
        (
            {2: 98, 4: 100, 8: 70},
            {"available": 4},
            "2 I/O nodes give 98 MiB/s, 98% of the best available (100 MiB/s with 4 I/O nodes)",
        ),
    ],
)
def test_why_is_a_clause_for_people(
    bandwidths: dict[int, float], told: dict[str, Any], why: str
) -> None:
    assert decided(bandwidths, **told).why == why


def test_the_reason_tells_in_values_whether_a_better_number_is_not_available() -> None:
    curve = {0: 50.0, 4: 100.0, 8: 130.0}
    limited, free = decided(curve, available=4).reason, decided(curve).reason
    unavailable = Unavailable(8, pytest.approx(0.3), 4)  # type: ignore[arg-type]
    assert limited == Chosen(4, 100.0, 4, 100.0, 2, True, unavailable)
    assert free == Chosen(8, 130.0, 8, 130.0, 3, False, None)


def test_nothing_known_leaves_it_to_the_site() -> None:
    nothing = np.zeros((2000, 0))
    decision = decide([], nothing, default=2)
    cause = "nothing is known about this job"
    assert decision == Decision(2, "default", None, 0.05, None, Defaulted(cause, 2, None))
    assert decision.why == f"the site's default, because {cause}"
    without = decide([], nothing)
    assert without == Decision(None, "none", None, 0.05, None, Defaulted(cause, None, None))
    assert without.why == f"{cause}, and the site has no default"


def test_a_curve_that_is_not_to_be_relied_on_leaves_it_to_the_site() -> None:
    decision = decided(CURVE, default=0, unknown="nothing resembles any phase")
    assert (decision.io_nodes, decision.source) == (0, "default")
    assert decision.bandwidth_mib_s is decision.within_10_percent is None
    assert decision.why == "the site's default, because nothing resembles any phase"


def test_a_curve_of_nothing_that_is_available_leaves_it_to_the_site() -> None:
    decision = decided({4: 100.0, 8: 200.0}, available=2, default=1)
    assert (decision.io_nodes, decision.source) == (1, "default")
    cause = "no bandwidth is known with at most 2 I/O nodes"
    assert decision.why == f"the site's default, because {cause}"
    assert decided({4: 100.0}, available=2).io_nodes is None
    without = decided({4: 100.0}, available=0)
    assert without.why.startswith("no bandwidth is known with direct access, and")


def test_the_sites_default_is_not_more_than_what_is_available() -> None:
    decision = decide([], np.zeros((1, 0)), available=1, default=8)
    assert (decision.io_nodes, decision.source) == (1, "default")
    assert decision.why.startswith("the site's default (8, but at most 1 is available), because")
    enough = decide([], np.zeros((1, 0)), available=8, default=8)
    assert enough.io_nodes == 8
    assert enough.why.startswith("the site's default, because")


# 8 I/O nodes are best by their mean, but near the best in 4 of 10 draws only. They are better than
# direct access in 6 draws, than 2 I/O nodes in 7, and than 4 I/O nodes in 4.
UNSURE = {0: 60.0, 2: 55.0, 4: 90.0, 8: 100.0}
DRAWS = [
    *[[50, 40, 80, 190]] * 4,
    *[[40, 30, 100, 50]] * 2,
    [60, 30, 100, 50],
    *[[90, 120, 100, 30]] * 3,
]


@pytest.mark.parametrize(
    ("default", "io_nodes", "source"),
    [
        (None, None, "none"),
        (0, 8, "model"),
        (2, 8, "model"),
        # 3 I/O nodes were not predicted: at least 2 are better than those.
        (3, 8, "model"),
        (4, 4, "default"),
        (6, 6, "default"),
        (8, 8, "default"),
        (16, 16, "default"),
        # No number that was predicted stands in for 1 I/O node.
        (1, 1, "default"),
    ],
)
def test_a_number_that_is_not_sure_to_be_near_the_best_must_be_better_than_the_default(
    default: int | None, io_nodes: int | None, source: str
) -> None:
    decision = decided(UNSURE, DRAWS, default=default)
    assert (decision.io_nodes, decision.source) == (io_nodes, source)
    if source == "model":
        assert decision.within_10_percent == 0.4
    else:
        words = "8 I/O nodes would reach 90% of the best bandwidth with a probability of only 40%"
        assert words in decision.why
        assert isinstance(decision.reason, Defaulted)
        assert decision.reason.cause == Unsure(8, 0.9, 0.4, run_with=0, is_enough=True)


@pytest.mark.parametrize(
    ("min_confidence", "default", "source"),
    [(0.4, None, "model"), (0.41, None, "none"), (0.6, 0, "model"), (0.61, 0, "default")],
)
def test_a_site_may_ask_for_another_confidence(
    min_confidence: float, default: int | None, source: str
) -> None:
    assert decided(UNSURE, DRAWS, default=default, min_confidence=min_confidence).source == source


def test_the_default_is_compared_as_far_as_it_is_available() -> None:
    # With at most 4, the number is 4, in 6 of 10 draws near the best of 0, 2 and 4.
    told = {"available": 4, "default": 8}
    assert decided(UNSURE, DRAWS, **told).source == "model"
    # It is not better than 4 of the site's 8 I/O nodes.
    unsure = decided(UNSURE, DRAWS, min_confidence=0.9, **told)
    assert (unsure.io_nodes, unsure.source) == (4, "default")


def test_a_site_that_tolerates_more_takes_numbers_that_are_not_near_the_best() -> None:
    draws = [[70, 100], [66, 100], [64, 100]]
    decision = decided({0: 70.0, 8: 100.0}, draws, tolerance=0.3)
    assert (decision.io_nodes, decision.within_10_percent) == (0, 0.0)
    assert decided({0: 70.0, 8: 100.0}, draws, tolerance=0.3, min_confidence=0.7).why == (
        "direct access would reach 65% of the best bandwidth with a probability of only 67% (run"
        " once with direct access, and the next job may be decided), and the site has no"
        " default"
    )


@pytest.mark.parametrize("doubtful", [0, 8])
def test_the_run_that_would_tell_is_with_the_number_that_is_in_doubt(doubtful: int) -> None:
    """The other number gets about 100 MiB/s in each draw, the doubtful one 50 to 200 MiB/s."""
    random = np.random.default_rng(1)
    wide, narrow = 100 * 2 ** random.uniform(-1, 1, 1000), random.uniform(99, 101, 1000)
    draws = np.array([wide, narrow] if doubtful == 0 else [narrow, wide]).T
    curve = points(dict(zip((0, 8), draws.mean(axis=0).tolist(), strict=True)))
    decision = decide(curve, draws, min_confidence=0.7)
    with_ = "direct access" if doubtful == 0 else "8 I/O nodes"
    assert f"(run once with {with_}, and the next job may be decided)" in decision.why


def test_a_run_tells_less_where_runs_scatter() -> None:
    """Both numbers are as doubtful, but runs with 8 I/O nodes scatter by a factor of 30."""
    random = np.random.default_rng(1)
    draws = 100 * 2 ** random.uniform(-1, 1, (1000, 2))
    curve = points(dict(zip((0, 8), draws.mean(axis=0).tolist(), strict=True)))
    runs = draws * np.exp(random.normal(0, [0.01, 3.4], (1000, 2)))
    decision = decide(curve, draws, runs, min_confidence=0.7)
    assert "(run once with direct access, and" in decision.why


def test_one_run_is_not_enough_if_all_other_numbers_stay_in_doubt() -> None:
    random = np.random.default_rng(1)
    draws = 100 * 2 ** random.uniform(-1, 1, (1000, 8))
    curve = points({n: draws[:, i].mean() for i, n in enumerate((0, 1, 2, 4, 8, 16, 32, 64))})
    decision = decide(curve, draws, min_confidence=0.7)
    assert "(several runs would help, the first with " in decision.why


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"min_confidence": 1.0}, "min_confidence: 1 is not a least confidence; give a"),
        ({"min_confidence": -0.1}, "min_confidence: -0.1 is not a least confidence; give a"),
        ({"tolerance": 1.0}, "tolerance: 1 is not a tolerance; give a share of"),
        ({"tolerance": -0.1}, "tolerance: -0.1 is not a tolerance; give a share of"),
        ({"tolerance": float("nan")}, "tolerance: nan is not a tolerance; give a share of"),
        ({"available": -1}, "available: -1 is not a number of I/O nodes; give 0 or more"),
        ({"default": -2}, "default: -2 is not a number of I/O nodes; give 0 or more"),
    ],
)
def test_a_rule_out_of_range_is_rejected(told: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        decided(CURVE, **told)
    assert str(error.value).startswith(message)


curves = st.dictionaries(st.integers(0, 64), st.floats(1e-3, 1e6), min_size=1, max_size=8)
tolerances = st.floats(0, 0.999)


@given(bandwidths=curves, tolerance=tolerances)
def test_the_choice_is_within_the_tolerance_of_the_best(
    bandwidths: dict[int, float], tolerance: float
) -> None:
    found = decided(bandwidths, tolerance=tolerance).bandwidth_mib_s
    assert found is not None
    assert found >= (1 - tolerance) * max(bandwidths.values()) * (1 - 1e-6)


@given(bandwidths=curves, tolerance=tolerances)
def test_none_with_fewer_is_within_the_tolerance(
    bandwidths: dict[int, float], tolerance: float
) -> None:
    chosen = decided(bandwidths, tolerance=tolerance).io_nodes
    assert chosen is not None
    least = (1 - tolerance) * max(bandwidths.values())
    assert all(b < least for n, b in bandwidths.items() if n < chosen)


@given(bandwidths=curves, some=tolerances, more=tolerances)
def test_a_larger_tolerance_never_takes_more(
    bandwidths: dict[int, float], some: float, more: float
) -> None:
    some, more = sorted((some, more))
    fewer, most = (decided(bandwidths, tolerance=t).io_nodes for t in (more, some))
    assert fewer is not None
    assert most is not None
    assert fewer <= most


@given(
    bandwidths=curves,
    tolerance=tolerances,
    available=st.integers(0, 64),
    default=st.none() | st.integers(0, 64),
)
def test_never_more_than_are_available(
    bandwidths: dict[int, float], tolerance: float, available: int, default: int | None
) -> None:
    decision = decided(bandwidths, tolerance=tolerance, available=available, default=default)
    permitted = {n: b for n, b in bandwidths.items() if n <= available}
    if permitted:
        alone = decided(permitted, tolerance=tolerance)
        assert decision.io_nodes == alone.io_nodes
        assert decision.within_10_percent == alone.within_10_percent
    elif default is None:
        assert (decision.io_nodes, decision.source) == (None, "none")
    else:
        assert (decision.io_nodes, decision.source) == (min(default, available), "default")


@given(bandwidths=curves, tolerance=st.floats(0, 0.0999))
def test_a_choice_without_doubt_is_surely_within_ten_percent(
    bandwidths: dict[int, float], tolerance: float
) -> None:
    assert decided(bandwidths, tolerance=tolerance).within_10_percent == 1
