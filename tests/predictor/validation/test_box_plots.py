from __future__ import annotations

from ioncast_base.pages.figures import Box
from predictor.validation.box_plots import Distributions, box, box_plot

# The log bandwidths of the third run and of the others are far apart (benchdb's rule).
FAR = [44.7, 44.8, 84.0, 44.8, 45.1, 45.1]


def test_quartiles_are_as_in_r() -> None:
    # In R: quantile(c(1, 2, 4, 8)) is 1 1.75 3 5 8, and quantile(c(10, 20)) is 10 12.5 15 17.5 20.
    assert box([8, 1, 2, 4], [False] * 4) == Box(1.75, 3, 5, 1, 8)
    assert box([10, 20], [False] * 2) == Box(12.5, 15, 17.5, 10, 20)
    assert box([7], [False]) == Box(7, 7, 7, 7, 7)


def test_whiskers_do_not_reach_outliers_and_do_not_end_inside_the_box() -> None:
    # In R: quantile(c(1, 2, 3, 4, 9)) is 1 2 3 4 9, and quantile(c(0, 0, 0, 100)) is 0 0 0 25 100.
    assert box([1, 2, 3, 4, 9], [False] * 4 + [True]) == Box(2, 3, 4, 1, 4, (9,))
    assert box([0, 0, 0, 100], [False] * 3 + [True]) == Box(0, 0, 25, 0, 25, (100,))


def test_only_bandwidths_have_outliers() -> None:
    shown = [
        [
            each.name
            for each in box_plot([Distributions("a", {4: FAR}, "", None, False, is_it)], [4])
        ]
        for is_it in (True, False)
    ]
    assert shown == [["a", "outlier"], ["a"]]


def test_distributions_of_two_sources_stand_side_by_side() -> None:
    values = {0: [1.0], 4: [5.0]}
    found = [Distributions(name, values, "", None, is_filled=True) for name in ("a", "b")]
    first, second = box_plot(found, [0, 4])
    assert [at + 1 for at in first.at[:1]] == list(first.at[1:])
    assert first.at[0] < 0 < second.at[0]


def test_a_source_without_values_is_not_drawn() -> None:
    assert box_plot([Distributions("a", {0: ()}, "", "cross", is_filled=True)], [0]) == []
