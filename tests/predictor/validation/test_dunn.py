from __future__ import annotations

from statistics import NormalDist

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from predictor.validation.dunn import adjusted_after_holm, composed_repetitions, dunn

MIB = 1 << 20


def test_two_groups_are_as_by_hand() -> None:
    # The ranks are 1 2 3 and 4 5 6, so z = 3 / sqrt(6 * 7 / 12 * (1/3 + 1/3)).
    z = 3 / (3.5 * 2 / 3) ** 0.5
    p_value = 2 * (1 - NormalDist().cdf(z))
    assert dunn({0: [1, 2, 3]}, {0: [4, 5, 6]}) == {0: pytest.approx(p_value)}


def test_runs_with_another_number_of_io_nodes_count_only_as_another_test() -> None:
    # Both pairs are three of six apart, as above. Holm doubles the smaller p-value of two tests,
    # and the other one may not be smaller.
    alone = 2 * (1 - NormalDist().cdf(3 / (3.5 * 2 / 3) ** 0.5))
    found = dunn({0: [1, 2, 3], 4: [7, 8, 9]}, {0: [4, 5, 6], 4: [10, 11, 12]})
    assert found == {0: pytest.approx(2 * alone), 4: pytest.approx(2 * alone)}


def test_a_benchmark_that_is_slower_with_every_number_of_io_nodes_differs() -> None:
    # HACC-IO on the platform: each rerun is faster than each repetition of the benchmark. Five of
    # ten apart is z = 5 / sqrt(10 * 11 / 12 * (1/5 + 1/5)), and Holm multiplies by five.
    z = 5 / (10 * 11 / 12 * 2 / 5) ** 0.5
    benchmark = {n: [1.0 + n, 1.1 + n, 1.2 + n, 1.3 + n, 1.4 + n] for n in (0, 1, 2, 4, 8)}
    reruns = {n: [run + 0.5 for run in runs] for n, runs in benchmark.items()}
    wanted = pytest.approx(5 * 2 * (1 - NormalDist().cdf(z)))
    assert dunn(benchmark, reruns) == dict.fromkeys(benchmark, wanted)
    assert max(dunn(benchmark, reruns).values()) < 0.05


def test_holm_is_as_in_the_worked_example_of_wikipedia() -> None:
    # 0.01, 0.04, 0.03 and 0.005: times 4, 3, 2 and 1 from the smallest, and never decreasing.
    assert adjusted_after_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


_RUNS = st.lists(st.integers(1, 9).map(float), min_size=2, max_size=12)


@pytest.mark.slow
@given(_RUNS, _RUNS)
def test_a_single_number_of_io_nodes_is_as_in_scikit_posthocs(
    benchmark: list[float], reruns: list[float]
) -> None:
    # The import takes seconds, for which the fast tests should not wait.
    from scikit_posthocs import posthoc_dunn  # noqa: PLC0415

    assume(len({*benchmark, *reruns}) > 1)
    peer = posthoc_dunn([benchmark, reruns]).to_numpy()[0, 1]
    assert dunn({2: benchmark}, {2: reruns}) == {2: pytest.approx(peer)}


def test_only_cells_with_two_repetitions_on_both_sides_are_tested() -> None:
    benchmark = {0: [1.0, 2.0], 1: [1.0], 2: [1.0, 2.0], 8: [1.0, 2.0]}
    reruns = {0: [1.5, 2.5], 1: [1.0, 2.0], 2: [1.0], 4: [1.0, 2.0]}
    assert list(dunn(benchmark, reruns)) == [0]
    assert dunn({}, reruns) == {}


def test_equal_runs_do_not_differ() -> None:
    assert dunn({0: [5.0, 5.0]}, {0: [5.0, 5.0]}) == {0: 1.0}


def test_repetitions_are_composed_one_by_one() -> None:
    # The times are 2 s + 1 s and 1 s + 1 s; the third repetition has no partner.
    work = [(100 * MIB, {0: [50.0, 100.0, 7.0]}), (100 * MIB, {0: [100.0, 100.0]})]
    assert composed_repetitions(work) == {0: (pytest.approx(200 / 3), pytest.approx(100))}


def test_single_repetitions_compose_by_their_times() -> None:
    work = [(3 * MIB, {0: [50.0], 1: [7.0]}), (11 * MIB, {0: [20.0], 1: [9.0], 2: [1.0]})]
    times = {0: 3 / 50 + 11 / 20, 1: 3 / 7 + 11 / 9}
    expected = {n: (pytest.approx(14 / time),) for n, time in times.items()}
    assert composed_repetitions(work) == expected
    assert composed_repetitions([]) == {}
