"""Allocation, compared with scipy's integer programming and with all combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from ioncast_base.allocation.dividing import (
    OBJECTIVES,
    POLICIES,
    Allocation,
    JobCurve,
    ObjectiveName,
    PolicyName,
    allocate,
)
from ioncast_base.errors import InputError

# FORGE's patterns are in this range. Whole numbers make ties frequent.
bandwidths = st.integers(1, 50).map(float) | st.floats(0.5, 5000.0)
weights = st.sampled_from([1.0, 1.0, 2.0, 0.25]) | st.floats(0.01, 100.0)
curves = st.dictionaries(st.integers(0, 12), bandwidths, min_size=1, max_size=6)
pools = st.integers(0, 40)
objectives = st.sampled_from(OBJECTIVES)


@st.composite
def jobs_of(draw: st.DrawFn, *, most: int = 8, fixed: bool = True) -> list[JobCurve]:
    """Draw jobs: with or without direct access, weights and current I/O nodes."""
    found = []
    for number in range(draw(st.integers(1, most))):
        is_fixed = fixed and draw(st.integers(0, 4)) == 0
        current = draw(st.integers(0, 12) if is_fixed else st.none() | st.integers(0, 12))
        found.append(
            JobCurve(
                id=str(number),
                nodes=draw(st.integers(1, 64)),
                curve=draw(curves),
                weight=draw(weights),
                current=current,
                is_fixed=is_fixed,
            )
        )
    return found


def held(jobs: Sequence[JobCurve]) -> int:
    return sum(job.current or 0 for job in jobs if job.is_fixed)


def given_to(allocation: Allocation) -> list[int | None]:
    return [share.io_nodes for share in allocation.shares]


def reached(job: JobCurve, io_nodes: int | None) -> float:
    """A job's bandwidth by its curve; 0 for a job that waits."""
    return 0.0 if io_nodes is None else job.curve.get(io_nodes, 0.0)


def worth(job: JobCurve, io_nodes: int | None, objective: ObjectiveName) -> float:
    """A job's part of the sum, by its definition."""
    best = max(job.curve.values(), default=1.0)
    return job.weight * reached(job, io_nodes) / (1.0 if objective == "sum" else best)


def total(
    jobs: Sequence[JobCurve],
    io_nodes: Sequence[int | None],
    minimum_gain: float = 0.0,
    objective: ObjectiveName = "sum",
) -> float:
    """The maximised sum, by its definition: the jobs' worth minus the price of moves."""
    found = 0.0
    for job, n in zip(jobs, io_nodes, strict=True):
        found += worth(job, n, objective)
        if n != job.current:
            found -= minimum_gain * worth(job, job.current, objective)
    return found


def served(io_nodes: Sequence[int | None]) -> int:
    """The number of jobs that do not wait."""
    return sum(n is not None for n in io_nodes)


def possible(job: JobCurve, least_mib_s: float = 0.0) -> list[int | None]:
    """All choices of a job."""
    if job.is_fixed:
        return [job.current]
    able: list[int | None] = [n for n in job.curve if job.curve[n] >= least_mib_s]
    return [*able, None] if 0 not in job.curve and least_mib_s <= 0 else able


def by_all_combinations(
    jobs: Sequence[JobCurve],
    pool: int,
    minimum_gain: float,
    everyone: bool,
    objective: ObjectiveName,
) -> tuple[int, float]:
    """The most jobs that can be served, if that counts, and the highest sum with so many."""
    return max(
        (served(each) if everyone else 0, total(jobs, each, minimum_gain, objective))
        for each in itertools.product(*map(possible, jobs))
        if sum(n or 0 for n in each) <= pool
    )


def by_integer_programming(
    jobs: Sequence[JobCurve],
    pool: int,
    least: Sequence[float],
    minimum_gain: float = 0.0,
    everyone: bool = True,
    objective: ObjectiveName = "sum",
) -> float:
    """The same problem for HiGHS: each variable says whether a job gets a number."""
    variables = [
        (place, n)
        for place, (job, floor) in enumerate(zip(jobs, least, strict=True))
        for n in possible(job, floor)
    ]
    values = np.array(
        [total([jobs[place]], [n], minimum_gain, objective) for place, n in variables]
    )
    costs = np.array([n or 0 for _, n in variables], dtype=float)
    running = np.array([n is not None for _, n in variables], dtype=float)
    one_each = np.array([[place == job for job, _ in variables] for place in range(len(jobs))])

    def highest(worth_of_each: np.ndarray[Any, Any], least_served: int) -> float:
        found = milp(
            -worth_of_each,
            integrality=np.ones(len(variables)),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(one_each.astype(float), 1, 1),
                LinearConstraint(costs[None, :], -np.inf, pool),
                LinearConstraint(running[None, :], least_served, np.inf),
            ],
            options={"mip_rel_gap": 0.0},
        )
        assert found.success, found.message
        return -float(found.fun)

    return highest(values, round(highest(running, 0)) if everyone else 0)


def assert_possible(jobs: Sequence[JobCurve], pool: int, allocation: Allocation) -> None:
    """Check that each job got one of its choices, and all together at most the pool."""
    assert [share.id for share in allocation.shares] == [job.id for job in jobs]
    assert allocation.io_nodes <= pool
    assert allocation.io_nodes == sum(n or 0 for n in given_to(allocation))
    for job, share in zip(jobs, allocation.shares, strict=True):
        assert share.io_nodes in possible(job)
        if share.io_nodes is None:
            assert share.expected_mib_s == 0
        else:
            assert share.expected_mib_s == job.curve.get(share.io_nodes)


def job(curve: Mapping[int, float], number: int = 0, nodes: int = 1, **told: Any) -> JobCurve:
    return JobCurve(f"j{number}", nodes, curve, **told)


def divided(curves_of_jobs: Sequence[Mapping[int, float]], pool: int, **told: Any) -> list[Any]:
    jobs = [job(curve, number) for number, curve in enumerate(curves_of_jobs)]
    return given_to(allocate(jobs, pool, **told))


@given(jobs_of(most=5), pools, st.sampled_from([0.0, 0.0, 0.1, 1.0]), st.booleans(), objectives)
def test_no_combination_is_worth_more(
    jobs: list[JobCurve], pool: int, minimum_gain: float, everyone: bool, objective: ObjectiveName
) -> None:
    assume(held(jobs) <= pool)
    allocation = allocate(
        jobs, pool, minimum_gain=minimum_gain, everyone=everyone, objective=objective
    )
    assert_possible(jobs, pool, allocation)
    io_nodes = given_to(allocation)
    most, highest = by_all_combinations(jobs, pool, minimum_gain, everyone, objective)
    assert total(jobs, io_nodes, minimum_gain, objective) == pytest.approx(highest, rel=1e-9)
    if everyone:
        assert served(io_nodes) == most


@pytest.mark.slow
@given(
    jobs_of(most=20),
    pools,
    st.floats(0, 1) | st.just(1.0),
    st.floats(0, 1) | st.just(0.0),
    st.booleans(),
    objectives,
)
def test_integer_programming_finds_no_better_solution(
    jobs: list[JobCurve],
    pool: int,
    floor: float,
    minimum_gain: float,
    everyone: bool,
    objective: ObjectiveName,
) -> None:
    assume(held(jobs) <= pool)
    static = allocate(jobs, pool, policy="static")
    least = [
        0.0 if job.is_fixed else floor * reached(job, n)
        for job, n in zip(jobs, given_to(static), strict=True)
    ]
    told: dict[str, Any] = {
        "minimum_gain": minimum_gain,
        "everyone": everyone,
        "objective": objective,
    }
    allocation = allocate(jobs, pool, floor=floor, **told)
    assert_possible(jobs, pool, allocation)
    best = by_integer_programming(jobs, pool, least, **told)
    found = total(jobs, given_to(allocation), minimum_gain, objective)
    # HiGHS accepts 0.999999 as a whole number.
    assert found == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_a_full_machine_is_divided_as_integer_programming_does() -> None:
    random = np.random.default_rng(6)
    jobs = [
        JobCurve(
            str(number),
            int(random.integers(1, 65)),
            {n: float(random.lognormal(6, 1)) for n in (number % 2, 2, 4, 8, 16, 32)},
        )
        for number in range(100)
    ]
    for pool in (16, 100, 300):
        for objective in OBJECTIVES:
            found = allocate(jobs, pool, objective=objective)
            best = by_integer_programming(jobs, pool, [0.0] * len(jobs), objective=objective)
            assert total(jobs, given_to(found), objective=objective) == pytest.approx(
                best, rel=1e-9
            )


@given(jobs_of(), pools, st.floats(0, 1), st.sampled_from(POLICIES))
def test_each_policy_gives_possible_choices_and_the_same_again(
    jobs: list[JobCurve], pool: int, floor: float, policy: PolicyName
) -> None:
    assume(held(jobs) <= pool)
    allocation = allocate(jobs, pool, policy=policy, floor=floor)
    assert_possible(jobs, pool, allocation)
    assert allocate(jobs, pool, policy=policy, floor=floor) == allocation


@given(jobs_of(), pools)
def test_no_other_policy_is_worth_more(jobs: list[JobCurve], pool: int) -> None:
    assume(held(jobs) <= pool)
    most = allocate(jobs, pool, everyone=False).weighted_mib_s
    for policy in POLICIES:
        assert allocate(jobs, pool, policy=policy).weighted_mib_s <= most * (1 + 1e-12)


@given(jobs_of(), pools, objectives)
def test_no_other_policy_serves_more_jobs(
    jobs: list[JobCurve], pool: int, objective: ObjectiveName
) -> None:
    assume(held(jobs) <= pool)
    most = served(given_to(allocate(jobs, pool, objective=objective)))
    for policy in POLICIES:
        assert served(given_to(allocate(jobs, pool, policy=policy))) <= most


@given(jobs_of(), pools, st.floats(0, 1) | st.just(1.0))
def test_no_job_gets_less_than_its_floor(jobs: list[JobCurve], pool: int, floor: float) -> None:
    assume(held(jobs) <= pool)
    static = allocate(jobs, pool, policy="static")
    found = allocate(jobs, pool, floor=floor)
    for one, reference in zip(found.shares, static.shares, strict=True):
        assert (one.expected_mib_s or 0) >= floor * (reference.expected_mib_s or 0)


@given(jobs_of(fixed=False), pools)
def test_more_io_nodes_are_never_worth_less(jobs: list[JobCurve], pool: int) -> None:
    fewer, more = (allocate(jobs, n, everyone=False).weighted_mib_s for n in (pool, pool + 1))
    assert more >= fewer * (1 - 1e-12)


@given(jobs_of(fixed=False), pools)
def test_more_io_nodes_never_serve_fewer_jobs(jobs: list[JobCurve], pool: int) -> None:
    fewer, more = (served(given_to(allocate(jobs, n))) for n in (pool, pool + 1))
    assert more >= fewer


@given(
    jobs_of(),
    pools,
    st.floats(0, 1) | st.just(0.0),
    st.floats(0, 1) | st.just(0.0),
    st.booleans(),
    objectives,
)
def test_a_repeated_division_changes_nothing(
    jobs: list[JobCurve],
    pool: int,
    minimum_gain: float,
    floor: float,
    everyone: bool,
    objective: ObjectiveName,
) -> None:
    assume(held(jobs) <= pool)
    told: dict[str, Any] = {
        "minimum_gain": minimum_gain,
        "floor": floor,
        "everyone": everyone,
        "objective": objective,
    }
    found = allocate(jobs, pool, **told)
    afterwards = [replace(job, current=n) for job, n in zip(jobs, given_to(found), strict=True)]
    assert allocate(afterwards, pool, **told) == found


@given(jobs_of(), pools)
def test_of_equal_sums_the_one_with_the_fewest_io_nodes_is_taken(
    jobs: list[JobCurve], pool: int
) -> None:
    whole = [
        replace(job, weight=1.0, curve={n: float(round(v)) or 1.0 for n, v in job.curve.items()})
        for job in jobs
    ]
    assume(held(jobs) <= pool)
    found = allocate(whole, pool)
    if pool := found.io_nodes:
        fewer = pool - 1
        if held(whole) <= fewer:
            less = allocate(whole, fewer)
            assert (served(given_to(less)), less.weighted_mib_s) < (
                served(given_to(found)),
                found.weighted_mib_s,
            )


def test_equal_sums_of_other_bandwidths_are_equal() -> None:
    # 200 + 400 is 100 + 500, and takes fewer I/O nodes.
    rising = {0: 100.0, 1: 110.0, 2: 200.0, 4: 400.0, 8: 500.0}
    few = {n: rising[n] for n in (0, 1, 2)}
    assert divided([few, rising], 8, minimum_gain=0.05) == [2, 4]
    assert divided([few, rising], 8, minimum_gain=0.05, everyone=False) == [2, 4]


DIRECT = {0: 100.0, 1: 90.0, 2: 200.0, 4: 300.0}
FORWARDED = {1: 90.0, 2: 200.0, 4: 300.0}


def test_best_goes_by_the_order_given_while_io_nodes_are_left() -> None:
    assert divided([DIRECT, DIRECT, DIRECT], 6, policy="best") == [4, 2, 0]
    assert divided([FORWARDED, FORWARDED, FORWARDED], 5, policy="best") == [4, 1, None]


def test_best_takes_the_fewest_of_equally_good_numbers() -> None:
    assert divided([{0: 1.0, 8: 2.0, 4: 2.0}], 8, policy="best") == [4]


def test_static_gives_in_proportion_to_compute_nodes() -> None:
    curve = dict.fromkeys(range(1, 17), 1.0)
    jobs = [job(curve, 0, nodes=8), job(curve, 1, nodes=24)]
    for machine_nodes, expected in [(None, [4, 12]), (10, [4, 12]), (64, [2, 6])]:
        found = allocate(jobs, 16, policy="static", machine_nodes=machine_nodes)
        assert given_to(found) == expected


def test_static_is_rounded_down_to_a_choice_and_not_to_direct_access() -> None:
    jobs = [job(DIRECT, 0, nodes=7), job(DIRECT, 1, nodes=1), job({0: 1.0}, 2, nodes=8)]
    assert given_to(allocate(jobs, 8, policy="static")) == [2, 1, 0]
    # In proportion each would get half an I/O node, so the first jobs get one.
    assert divided([DIRECT] * 4, 2, policy="static") == [1, 1, 0, 0]
    assert divided([FORWARDED] * 4, 2, policy="static") == [1, 1, None, None]


def test_equal_is_rounded_down_to_a_choice() -> None:
    assert divided([DIRECT] * 2, 7, policy="equal") == [2, 2]
    assert divided([DIRECT] * 2, 1, policy="equal") == [0, 0]
    assert divided([FORWARDED] * 2, 1, policy="equal") == [None, None]


def test_a_job_without_direct_access_waits_when_no_io_node_is_left() -> None:
    found = allocate([job({1: 10.0}, 0), job({1: 20.0}, 1)], 1)
    assert found.shares == (("j0", None, 0.0), ("j1", 1, 20.0))
    assert (found.io_nodes, found.expected_mib_s) == (1, 20.0)


def test_no_job_waits_where_all_can_have_their_smallest_number() -> None:
    # The first job is best with all I/O nodes; the others then have none.
    curves = [{2: 10.0, 6: 100.0}, {2: 1.0}, {2: 1.0}]
    assert divided(curves, 6) == [2, 2, 2]
    assert divided(curves, 6, everyone=False) == [6, None, None]
    # A job with direct access never waits.
    assert divided([{2: 10.0, 6: 100.0}, {0: 1.0, 2: 2.0}, {0: 1.0, 2: 2.0}], 6) == [6, 0, 0]


def test_too_few_io_nodes_for_all_serve_as_many_jobs_as_possible() -> None:
    assert divided([{3: 100.0}, {2: 1.0}, {2: 1.0}], 4) == [None, 2, 2]
    assert divided([{3: 100.0}, {2: 1.0}, {2: 2.0}], 3) == [3, None, None]


def test_everyone_is_served_as_far_as_the_floors_allow() -> None:
    # With static the first job gets 3 I/O nodes (100 MiB/s), and the second one waits.
    jobs = [job({1: 10.0, 2: 60.0, 3: 100.0}, 0, nodes=4), job({2: 5.0}, 1)]
    assert given_to(allocate(jobs, 4, policy="static")) == [3, None]
    assert given_to(allocate(jobs, 4, floor=0.6)) == [2, 2]
    assert given_to(allocate(jobs, 4, floor=0.6, everyone=False)) == [3, None]
    assert given_to(allocate(jobs, 4, floor=0.7)) == [3, None]


def test_in_proportion_the_mib_s_of_a_slow_job_count_as_those_of_a_fast_one() -> None:
    # In MiB/s the fast job gains 300 and the slow one 10; of their best 23 % and 50 %.
    curves = [{1: 10.0, 2: 20.0}, {1: 1000.0, 2: 1300.0}]
    assert divided(curves, 3) == [1, 2]
    assert divided(curves, 3, objective="proportional") == [2, 1]


def test_the_share_of_the_own_best_is_a_mean_over_the_jobs_that_share() -> None:
    curves = [{1: 10.0, 2: 20.0}, {1: 1000.0, 2: 1300.0}]
    jobs = [job(curve, number) for number, curve in enumerate(curves)]
    running = job({8: 1.0, 9: 2.0}, 2, current=8, is_fixed=True)
    found = allocate([*jobs, running], 11)
    assert found.of_own_best == pytest.approx((10 / 20 + 1) / 2)
    heavy = [replace(jobs[0], weight=3.0), jobs[1]]
    assert allocate(heavy, 3).of_own_best == pytest.approx((3 * 10 / 20 + 1) / 4)
    assert allocate(jobs, 0).of_own_best == 0.0
    assert allocate([running], 8).of_own_best is None


def test_a_job_runs_however_small_its_weight_is() -> None:
    tiny = job({1: 1e-9}, 0, weight=1e-12)
    huge = job({0: 1e15}, 1, weight=1e12)
    assert given_to(allocate([tiny, huge], 1)) == [1, 0]


@pytest.mark.parametrize("policy", POLICIES)
def test_fixed_jobs_keep_their_current_io_nodes(policy: PolicyName) -> None:
    running = job({0: 1000.0, 3: 10.0}, 0, current=3, is_fixed=True)
    unknown = job({}, 1, current=2, is_fixed=True)
    found = allocate([running, job(DIRECT, 2, nodes=7), unknown], 9, policy=policy)
    assert found.shares == (("j0", 3, 10.0), ("j2", 4, 300.0), ("j1", 2, None))
    assert (found.io_nodes, found.expected_mib_s) == (9, 310.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_without_jobs_nothing_is_given(policy: PolicyName) -> None:
    assert allocate([], 4, policy=policy) == Allocation(policy, 4, (), 0.0, None)


def test_weights_count() -> None:
    one, other = job({0: 10.0, 4: 100.0}, 0), job({0: 10.0, 4: 60.0}, 1)
    assert given_to(allocate([one, other], 4)) == [4, 0]
    found = allocate([one, replace(other, weight=2.0)], 4)
    assert given_to(found) == [0, 4]
    assert (found.expected_mib_s, found.weighted_mib_s) == (70.0, 130.0)


@pytest.mark.parametrize(("minimum_gain", "moved"), [(0.0, 4), (0.19, 4), (0.21, 2), (1.0, 2)])
def test_a_job_moves_only_for_more_than_the_minimum_gain(minimum_gain: float, moved: int) -> None:
    running = job({2: 100.0, 4: 120.0}, current=2)
    assert given_to(allocate([running], 4, minimum_gain=minimum_gain)) == [moved]


def test_a_floor_keeps_a_share_of_the_bandwidth_with_static() -> None:
    # To give all I/O nodes to the second job is best.
    curves = [{0: 10.0, 2: 100.0}, {0: 10.0, 2: 20.0, 4: 500.0}]
    assert divided(curves, 4) == [0, 4]
    assert divided(curves, 4, floor=0.1) == [0, 4]
    assert divided(curves, 4, floor=0.5) == [2, 2]


def test_numbers_of_numpy_are_numbers() -> None:
    curve = {np.int64(0): np.float64(1.0), np.int64(2): np.float64(3.0)}
    made = JobCurve("a", np.int64(4), curve, np.float32(1.5), np.int64(2))  # type: ignore[arg-type]
    found = allocate([made], np.int64(2))  # type: ignore[arg-type]
    assert found.shares == (("a", 2, 3.0),)
    assert type(found.shares[0].io_nodes) is int


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"nodes": 0}, "job a: nodes: 0 is not a whole number of at least 1"),
        ({"nodes": 1.5}, "job a: nodes: 1.5 is not a whole number of at least 1"),
        ({"nodes": True}, "job a: nodes: True is not a whole number of at least 1"),
        ({"curve": {-1: 1.0}}, "job a: curve: -1 is not a whole number of at least 0"),
        ({"curve": {2: 0.0}}, "job a: curve.2: 0.0 is not from 1e-09 to 1e+15"),
        ({"curve": {2: math.nan}}, "job a: curve.2: nan is not from 1e-09 to 1e+15"),
        ({"curve": {2: math.inf}}, "job a: curve.2: inf is not from 1e-09 to 1e+15"),
        ({"curve": {2: "fast"}}, "job a: curve.2: 'fast' is not from 1e-09 to 1e+15"),
        ({"weight": 0}, "job a: weight: 0 is not from 1e-12 to 1e+12"),
        ({"weight": math.inf}, "job a: weight: inf is not from 1e-12 to 1e+12"),
        ({"current": -1}, "job a: current: -1 is not a whole number of at least 0"),
        (
            {"is_fixed": True},
            "job a: the job is fixed, but `current` is missing; give the number of I/O nodes that"
            " it has",
        ),
        (
            {"curve": {}},
            "job a: curve: it is empty, so the job has no choice; leave the job out, or give"
            " it as fixed",
        ),
    ],
)
def test_an_impossible_job_is_rejected(told: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        JobCurve(**{"id": "a", "nodes": 1, "curve": {1: 1.0}} | told)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"pool": -1}, "pool: -1 is not a whole number of at least 0"),
        ({"pool": 2.0}, "pool: 2.0 is not a whole number of at least 0"),
        ({"floor": 1.1}, "floor: 1.1 is not from 0 to 1"),
        ({"minimum_gain": math.nan}, "minimum gain: nan is not from 0 to 1"),
        (
            {"objective": "fair"},
            "there is no objective 'fair'; the objectives are sum, proportional",
        ),
        ({"machine_nodes": 0}, "machine nodes: 0 is not a whole number of at least 1"),
        (
            {"policy": "fair"},
            "there is no policy 'fair'; the policies are mckp, best, static, equal",
        ),
        (
            {"pool": 2},
            "pool: fixed jobs have 3 I/O nodes, more than the pool, which has 2; give the size of"
            " the whole pool, or leave out jobs that have ended",
        ),
        ({"jobs": [job(DIRECT), job(DIRECT)]}, "job j0: two jobs have this id"),
    ],
)
def test_an_impossible_division_is_rejected(told: dict[str, Any], said: str) -> None:
    jobs = [job(DIRECT, 0), job({}, 1, current=3, is_fixed=True)]
    with pytest.raises(InputError) as error:
        allocate(**{"jobs": jobs, "pool": 8} | told)
    assert str(error.value) == said


def test_a_division_that_takes_too_much_memory_is_rejected() -> None:
    jobs = [job({0: 1.0, 1_000_000: 2.0}, number) for number in range(2_000)]
    with pytest.raises(InputError, match="2000 jobs and 1000000 I/O nodes are too many"):
        allocate(jobs, 1_000_000)
    # If the pool is large enough for all, no table is needed.
    assert allocate(jobs, 2_000_000_000).io_nodes == 2_000_000_000
