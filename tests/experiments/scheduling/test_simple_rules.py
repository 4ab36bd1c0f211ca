"""Rules that divide I/O nodes without a sum, on cases worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.scheduling.simple_rules import best, equal, static
from ioncast_base.knapsack import JobCurve

DIRECT = {0: 100.0, 1: 90.0, 2: 200.0, 4: 300.0}
FORWARDED = {1: 90.0, 2: 200.0, 4: 300.0}

Rule = Callable[[Sequence[JobCurve], int], list[int | None]]


def divided(rule: Rule, curves: Sequence[Mapping[int, float]], pool: int) -> list[int | None]:
    return rule([JobCurve(str(number), 1, curve) for number, curve in enumerate(curves)], pool)


def test_best_goes_by_the_order_given_while_io_nodes_are_left() -> None:
    assert divided(best, [DIRECT, DIRECT, DIRECT], 6) == [4, 2, 0]
    assert divided(best, [FORWARDED, FORWARDED, FORWARDED], 5) == [4, 1, None]


def test_best_takes_the_fewest_of_equally_good_numbers() -> None:
    assert divided(best, [{0: 1.0, 8: 2.0, 4: 2.0}], 8) == [4]


def test_static_gives_in_proportion_to_compute_nodes() -> None:
    curve = dict.fromkeys(range(1, 17), 1.0)
    assert static([JobCurve("a", 8, curve), JobCurve("b", 24, curve)], 16) == [4, 12]


def test_static_is_rounded_down_to_a_choice_and_not_to_direct_access() -> None:
    jobs = [JobCurve("a", 7, DIRECT), JobCurve("b", 1, DIRECT), JobCurve("c", 8, {0: 1.0})]
    assert static(jobs, 8) == [2, 1, 0]
    # In proportion each would get half an I/O node, so the first jobs get one.
    assert divided(static, [DIRECT] * 4, 2) == [1, 1, 0, 0]
    assert divided(static, [FORWARDED] * 4, 2) == [1, 1, None, None]


def test_equal_is_rounded_down_to_a_choice() -> None:
    assert divided(equal, [DIRECT] * 2, 7) == [2, 2]
    assert divided(equal, [DIRECT] * 2, 1) == [0, 0]
    assert divided(equal, [FORWARDED] * 2, 1) == [None, None]
