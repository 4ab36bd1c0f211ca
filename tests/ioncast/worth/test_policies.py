from __future__ import annotations

from collections.abc import Callable

import pytest

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.policies import POLICIES, chosen_policies
from ioncast.worth.policy import SimulatedArbiter
from ioncast.worth.replayed_machine import Machine, check_pool
from ioncast.worth.workload import Workload
from ioncast_base.errors import InputError

Make = Callable[..., Workload]

CURVE = {0: 60.0, 1: 10.0, 2: 20.0, 4: 50.0, 8: 45.0}


def asked(work: Workload, policy: str, machine: Machine) -> list[int]:
    numbers: list[int] = POLICIES[policy].asks(work, machine).tolist()
    return numbers


def sized(a_workload: Make, *nodes: int) -> Workload:
    return a_workload([(0, size, 10, 0, 0) for size in nodes], [CURVE])


def test_static_gives_in_proportion_rounded_down_but_at_least_one(a_workload: Make) -> None:
    # 16 for 128 nodes: one for each 8 nodes. 3 and 16 I/O nodes were not measured.
    work = sized(a_workload, 1, 8, 16, 31, 32, 128)
    assert asked(work, "static", Machine(128, 16)) == [1, 1, 2, 2, 4, 8]


def test_equal_gives_the_pool_over_the_jobs_of_a_full_machine(a_workload: Make) -> None:
    # Jobs have 16 nodes on average, so eight run at once on 128: two of 16 I/O nodes for each.
    work = sized(a_workload, 8, 24)
    assert asked(work, "equal", Machine(128, 16)) == [2, 2]
    assert asked(work, "equal", Machine(128, 32)) == [4, 4]
    # Four I/O nodes are not enough for eight jobs, but a job needs at least one.
    assert asked(work, "equal", Machine(128, 4)) == [1, 1]


def test_best_is_the_fastest_that_the_pool_has(a_workload: Make) -> None:
    work = sized(a_workload, 8)
    assert asked(work, "best", Machine(128, 16)) == [4]
    assert asked(work, "best", Machine(128, 3)) == [2]


def test_direct_access_is_a_choice_only_if_it_is_allowed(a_workload: Make) -> None:
    work = sized(a_workload, 8)
    machine = Machine(128, 16, direct=True)
    assert asked(work, "best", machine) == [0]
    assert asked(work, "mckp", machine) == [0]
    assert asked(work, "mckp", Machine(128, 16)) == [1]
    assert asked(work, "static", machine) == [1]
    assert asked(work, "direct", Machine(128, 16)) == [0]


def test_one_gives_the_fewest_measured_if_one_was_not_measured(a_workload: Make) -> None:
    work = a_workload([(0, 1, 10, 0, 0)], [{2: 1.0, 4: 2.0}])
    assert asked(work, "one", Machine(8, 8)) == [2]


def test_the_order_of_jobs_does_not_change_the_io_nodes_of_each() -> None:
    curves = [IoCurve("steep", 8, {1: 10.0, 4: 40.0}), IoCurve("flat", 8, {1: 10.0, 2: 11.0})]
    arbiter = SimulatedArbiter(curves, Machine(8, 16))
    assert arbiter.divide([0, 1], 3) == [4, 1]
    assert arbiter.divide([1, 0], 3) == [1, 4]


def test_direct_is_compared_only_if_all_curves_have_it() -> None:
    both = IoCurve("both", 8, {0: 1.0, 1: 2.0})
    forwarded = IoCurve("forwarded", 8, {1: 2.0})
    assert [policy.name for policy in chosen_policies((), [both])] == list(POLICIES)
    assert "direct" not in [policy.name for policy in chosen_policies((), [both, forwarded])]
    with pytest.raises(InputError, match="not measured with direct access"):
        chosen_policies(("direct",), [both, forwarded])


def test_policies_are_compared_in_the_order_asked_for_and_once() -> None:
    curve = IoCurve("any", 8, {1: 2.0})
    found = chosen_policies(("mckp", "static", "mckp"), [curve])
    assert [policy.name for policy in found] == ["mckp", "static"]


def test_a_pool_that_is_too_small_for_a_curve_is_rejected() -> None:
    curves = [IoCurve("a", 8, {1: 2.0}), IoCurve("b", 8, {0: 1.0, 4: 2.0})]
    check_pool(curves, Machine(8, 4))
    with pytest.raises(InputError, match="a pool of 3 is too small") as refused:
        check_pool(curves, Machine(8, 3))
    assert "give at least 4" in str(refused.value)
