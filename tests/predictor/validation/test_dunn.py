from __future__ import annotations

import sys
from statistics import NormalDist

import pytest

from ioncast_base.errors import InputError
from predictor.validation.dunn import composed_repetitions, dunn

MIB = 1 << 20


def test_two_groups_are_as_by_hand() -> None:
    # The ranks are 1 2 3 and 4 5 6, so z = 3 / sqrt(6 * 7 / 12 * (1/3 + 1/3)).
    z = 3 / (3.5 * 2 / 3) ** 0.5
    p_value = 2 * (1 - NormalDist().cdf(z))
    assert dunn({0: [1, 2, 3]}, {0: [4, 5, 6]}) == {0: pytest.approx(p_value)}


def test_the_test_is_adjusted_over_all_pairs_of_groups() -> None:
    # Four groups share 1 to 12 in order: N(N+1)/12 = 13, and the mean ranks 2, 5, 8, 11 differ by
    # 3, 6 or 9. Holm multiplies the p-value of the nearest pairs (three of six, 0.308) by 3.
    alone = 2 * (1 - NormalDist().cdf(3 / (13 * 2 / 3) ** 0.5))
    found = dunn({0: [1, 2, 3], 4: [7, 8, 9]}, {0: [4, 5, 6], 4: [10, 11, 12]})
    assert found == {0: pytest.approx(3 * alone), 4: pytest.approx(3 * alone)}


def test_only_cells_with_two_repetitions_on_both_sides_are_tested() -> None:
    benchmark = {0: [1.0, 2.0], 1: [1.0], 2: [1.0, 2.0], 8: [1.0, 2.0]}
    reruns = {0: [1.5, 2.5], 1: [1.0, 2.0], 2: [1.0], 4: [1.0, 2.0]}
    assert list(dunn(benchmark, reruns)) == [0]
    assert dunn({}, reruns) == {}


def test_equal_runs_do_not_differ() -> None:
    assert dunn({0: [5.0, 5.0]}, {0: [5.0, 5.0]}) == {0: 1.0}


def test_where_the_library_is_missing_it_is_said_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(InputError, match="pip install 'ioncast\\[validation\\]'"):
        dunn({0: [1, 2]}, {0: [3, 4]})


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
