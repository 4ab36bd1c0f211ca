"""Axes of figures: round numbers, powers of ten, and places side by side."""

from __future__ import annotations

from math import inf, isclose, log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.pages.figures import (
    Band,
    Bars,
    Box,
    Boxes,
    Points,
    categories,
    from_zero,
    highest,
    logarithmic,
    numbers,
    round_ticks,
    rows,
    side_by_side,
    stacked,
    visible_ends,
    whole_ticks,
)

POSITIVE = st.floats(1e-9, 1e18)


@given(st.floats(-1e12, 1e12), POSITIVE)
def test_ticks_are_a_few_round_numbers_at_equal_distances(low: float, size: float) -> None:
    high = low + size
    if size < 1e-6 * abs(low):
        return
    ticks = round_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    step = (ticks[1] - ticks[0]) if len(ticks) > 1 else size
    assert all(low - 1e-6 * size <= tick <= high + 1e-6 * size for tick in ticks)
    if len(ticks) > 1:
        digit = step / 10 ** round(log10(step / 2))
        assert any(isclose(digit, round_one, rel_tol=1e-3) for round_one in (1, 2, 5, 0.5, 10))


@given(st.floats(0, allow_infinity=True), st.sampled_from([0.0, 5e-324, 1e308]))
def test_any_value_has_an_axis(value: float, other: float) -> None:
    axis = from_zero([Points("", "", [0, 1], [value, other])], "")
    assert axis.low < axis.high < inf
    assert round_ticks(other, other) == []


def test_labels_are_written_as_the_caller_wants() -> None:
    assert list(numbers(0, 5000, "").ticks.values()) == [
        "0", "1,000", "2,000", "3,000", "4,000", "5,000",
    ]  # fmt: skip
    assert list(numbers(0, 0.2, "", "{:.0%}".format).ticks.values())[-1] == "20%"


def test_an_axis_without_values_has_a_length() -> None:
    axis = from_zero([Points("", "", [], [])], "")
    assert axis.low < axis.high


@given(POSITIVE, st.floats(1.5, 1e15))
def test_a_logarithmic_axis_has_few_powers_of_ten(low: float, factor: float) -> None:
    ticks = logarithmic(low, low * factor, "").ticks
    assert len(ticks) <= 6
    assert all(isclose(log10(tick), round(log10(tick)), abs_tol=1e-9) for tick in ticks)


def test_counts_have_whole_labels() -> None:
    assert list(whole_ticks(numbers(0, 1.05, "")).ticks) == [0, 1]


def test_the_highest_value_is_that_of_any_series() -> None:
    band = Band("", "", [0], [1], [7])
    boxes = Boxes("", "", [0], [Box(1, 2, 3, 0, 4, (9,))])
    assert highest([band, Bars("", "", [0, 1], [3, None])]) == 7
    assert highest([band, boxes]) == 9
    assert highest([]) == 0


def test_members_of_a_group_stand_side_by_side_without_overlap() -> None:
    (first, width), (second, _) = side_by_side(2, 0), side_by_side(2, 1)
    assert first == -second
    assert second - first == pytest.approx(width)


def test_the_shortest_bar_is_visible_and_others_keep_their_ends() -> None:
    assert visible_ends([0, 10, 500], [0, 10.5, 900], 1000) == [2, 12, 900]


def test_stacked_parts_begin_where_the_last_one_ends() -> None:
    assert list(stacked([[1, 2], [3, 0], [5, 5]])) == [
        ([0, 0], [1, 2]),
        ([1, 2], [4, 2]),
        ([4, 2], [9, 7]),
    ]


def test_categories_are_at_0_1_2() -> None:
    axis = categories(["a", "b"], "which")
    assert (axis.low, axis.high, axis.ticks) == (-0.5, 1.5, {0: "a", 1: "b"})


def test_rows_have_their_names_above_their_bars() -> None:
    panel = rows(["a", "b"], numbers(0, 1, ""), [])
    [names] = panel.series
    assert getattr(names, "texts", None) == ["a", "b"]
    assert [at < row for row, at in enumerate(names.at)] == [True, True]
