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

from experiments.scheduling.simple_rules import best, equal, static
from ioncast_base.errors import InputError
from ioncast_base.knapsack import (
    OBJECTIVES,
    Allocation,
    JobCurve,
    ObjectiveName,
    allocate,
)

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


def possible(job: JobCurve) -> list[int | None]:
    """All choices of a job."""
    if job.is_fixed:
        return [job.current]
    return [*job.curve] if 0 in job.curve else [*job.curve, None]


def by_all_combinations(
    jobs: Sequence[JobCurve],
    pool: int,
    minimum_gain: float,
    objective: ObjectiveName,
) -> tuple[int, float]:
    """The most jobs that can be served, and the highest sum with so many."""
    return max(
        (served(each), total(jobs, each, minimum_gain, objective))
        for each in itertools.product(*map(possible, jobs))
        if sum(n or 0 for n in each) <= pool
    )


def by_integer_programming(
    jobs: Sequence[JobCurve],
    pool: int,
    minimum_gain: float = 0.0,
    objective: ObjectiveName = "sum",
) -> float:
    """The same problem for HiGHS: each variable says whether a job gets a number."""
    variables = [(place, n) for place, job in enumerate(jobs) for n in possible(job)]
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

    return highest(values, round(highest(running, 0)))


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


@given(jobs_of(most=5), pools, st.sampled_from([0.0, 0.0, 0.1, 1.0]), objectives)
def test_no_combination_is_worth_more(
    jobs: list[JobCurve], pool: int, minimum_gain: float, objective: ObjectiveName
) -> None:
    assume(held(jobs) <= pool)
    allocation = allocate(jobs, pool, minimum_gain=minimum_gain, objective=objective)
    assert_possible(jobs, pool, allocation)
    io_nodes = given_to(allocation)
    most, highest = by_all_combinations(jobs, pool, minimum_gain, objective)
    assert total(jobs, io_nodes, minimum_gain, objective) == pytest.approx(highest, rel=1e-9)
    assert served(io_nodes) == most


@pytest.mark.slow
@given(jobs_of(most=20), pools, st.floats(0, 1) | st.just(0.0), objectives)
def test_integer_programming_finds_no_better_solution(
    jobs: list[JobCurve], pool: int, minimum_gain: float, objective: ObjectiveName
) -> None:
    assume(held(jobs) <= pool)
    allocation = allocate(jobs, pool, minimum_gain=minimum_gain, objective=objective)
    assert_possible(jobs, pool, allocation)
    best = by_integer_programming(jobs, pool, minimum_gain, objective)
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
            best = by_integer_programming(jobs, pool, objective=objective)
            assert total(jobs, given_to(found), objective=objective) == pytest.approx(
                best, rel=1e-9
            )


@given(jobs_of(fixed=False), pools, objectives)
def test_simpler_rules_neither_serve_more_jobs_nor_reach_more_with_as_many(
    jobs: list[JobCurve], pool: int, objective: ObjectiveName
) -> None:
    found = given_to(allocate(jobs, pool, objective=objective))
    for rule in (best, static, equal):
        other = rule(jobs, pool)
        assert sum(n or 0 for n in other) <= pool
        assert all(n in possible(job) for job, n in zip(jobs, other, strict=True))
        assert served(other) <= served(found)
        if served(other) == served(found):
            most = total(jobs, found, objective=objective)
            assert total(jobs, other, objective=objective) <= most * (1 + 1e-12)


@given(jobs_of(fixed=False), pools)
def test_more_io_nodes_never_serve_fewer_jobs_and_are_never_worth_less_to_as_many(
    jobs: list[JobCurve], pool: int
) -> None:
    fewer, more = (allocate(jobs, n) for n in (pool, pool + 1))
    assert served(given_to(more)) >= served(given_to(fewer))
    if served(given_to(more)) == served(given_to(fewer)):
        assert more.weighted_mib_s >= fewer.weighted_mib_s * (1 - 1e-12)


@given(jobs_of(), pools, st.floats(0, 1) | st.just(0.0), objectives)
def test_a_repeated_division_changes_nothing(
    jobs: list[JobCurve], pool: int, minimum_gain: float, objective: ObjectiveName
) -> None:
    assume(held(jobs) <= pool)
    told: dict[str, Any] = {"minimum_gain": minimum_gain, "objective": objective}
    found = allocate(jobs, pool, **told)
    assert allocate(jobs, pool, **told) == found
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


DIRECT = {0: 100.0, 1: 90.0, 2: 200.0, 4: 300.0}
FORWARDED = {1: 90.0, 2: 200.0, 4: 300.0}


def test_a_job_without_direct_access_waits_when_no_io_node_is_left() -> None:
    found = allocate([job({1: 10.0}, 0), job({1: 20.0}, 1)], 1)
    assert found.shares == (("j0", None, 0.0), ("j1", 1, 20.0))
    assert (found.io_nodes, found.expected_mib_s) == (1, 20.0)


@pytest.mark.promise("slurm-too-few-io-nodes")
def test_no_job_waits_where_all_can_have_their_smallest_number() -> None:
    # The first job alone would reach the highest sum with all I/O nodes.
    curves = [{2: 10.0, 6: 100.0}, {2: 1.0}, {2: 1.0}]
    assert divided(curves, 6) == [2, 2, 2]
    # A job with direct access never waits.
    assert divided([{2: 10.0, 6: 100.0}, {0: 1.0, 2: 2.0}, {0: 1.0, 2: 2.0}], 6) == [6, 0, 0]


@pytest.mark.promise("slurm-too-few-io-nodes")
def test_too_few_io_nodes_for_all_serve_as_many_jobs_as_possible() -> None:
    assert divided([{3: 100.0}, {2: 1.0}, {2: 1.0}], 4) == [None, 2, 2]
    assert divided([{3: 100.0}, {2: 1.0}, {2: 2.0}], 3) == [3, None, None]


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


def test_fixed_jobs_keep_their_current_io_nodes() -> None:
    running = job({0: 1000.0, 3: 10.0}, 0, current=3, is_fixed=True)
    unknown = job({}, 1, current=2, is_fixed=True)
    found = allocate([running, job(DIRECT, 2, nodes=7), unknown], 9)
    assert found.shares == (("j0", 3, 10.0), ("j2", 4, 300.0), ("j1", 2, None))
    assert (found.io_nodes, found.expected_mib_s) == (9, 310.0)


def test_without_jobs_nothing_is_given() -> None:
    assert allocate([], 4) == Allocation(4, (), 0.0, None)


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
        ({"minimum_gain": math.nan}, "minimum gain: nan is not from 0 to 1"),
        ({"objective": "fair"}, "there is no objective 'fair'; give one of sum, proportional"),
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
