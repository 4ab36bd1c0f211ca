"""Planted queues, with pools whose worth is known, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.worth.in_words import to_text
from ioncast.worth.logged_io import ApplicationCurve
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.valued_queue import JobIo, Reason
from ioncast.worth.valuing import PoolArm, QueueWorth, worth_of
from ioncast_base.errors import InputError
from tests.support.examples import examples

DAY_S = 86_400


def a_curve(
    mib_s: Mapping[int, float], doubt: float = 0.0, *, is_sure: bool = True
) -> ApplicationCurve:
    """A curve whose draws differ from the expected bandwidths by factors around 1."""
    expected = np.array(list(mib_s.values()))
    factors = np.exp(doubt * np.random.default_rng(1).standard_normal((100, len(mib_s))))
    return ApplicationCurve(tuple(mib_s), expected, expected * factors, is_sure)


def a_job(
    submit_s: float,
    curve: ApplicationCurve | None,
    *,
    compute_s: float = 100.0,
    mib: float = 0.0,
    nodes: int = 1,
    cores: int | None = 4,
) -> JobIo:
    """A job that ran with direct access at the bandwidth of its curve."""
    io_s = mib / curve.mib_s[0] if curve else 0.0
    reason: Reason | None = None if curve else "no log"
    run_s = compute_s + io_s
    job = QueuedJob(submit_s, run_s, 2 * run_s, nodes, "ada run", start_s=submit_s, cores=cores)
    return JobIo(job, "app", mib, io_s, curve, reason)


def asked(jobs: Sequence[JobIo], *pools: int, nodes: int | None = None) -> QueueWorth:
    return worth_of(jobs, pools, system="s", curves_of="s", ran_with=0, nodes=nodes)


def arm_of(found: QueueWorth, name: str, pool: int) -> PoolArm:
    [arm] = [arm for arm in found.arms if (arm.arm, arm.pool) == (name, pool)]
    return arm


def test_a_job_takes_its_compute_time_and_its_bytes_at_the_bandwidth_of_each_arm() -> None:
    # 720 MiB: 72 s with direct access, 36 s with 1 I/O node, 9 s with 4. One node of two: the
    # static share of a pool of 4 is 2, which was not measured, so 1.
    curve = a_curve({0: 10, 1: 20, 4: 80})
    found = asked([a_job(0, curve, compute_s=36, mib=720)], 4, nodes=2)
    hours = {arm.arm: (arm.io_hours.value, arm.hours.value) for arm in found.arms}
    assert hours == {
        "direct": (pytest.approx(0.02), pytest.approx(4 * 0.03)),
        "static": (pytest.approx(0.01), pytest.approx(4 * 0.02)),
        "ioncast": (pytest.approx(0.0025), pytest.approx(4 * 0.0125)),
        "best": (pytest.approx(0.0025), pytest.approx(4 * 0.0125)),
    }
    saved = arm_of(found, "ioncast", 4).saved_hours
    assert saved is not None
    assert saved.value == pytest.approx(4 * 0.0175)
    assert found.unit == "core-hours"


def test_the_smallest_pool_that_gains_about_as_much_as_the_largest_is_named() -> None:
    # Jobs run one at a time, and 8 I/O nodes are no faster than 4.
    curve = a_curve({0: 10, 1: 12, 2: 20, 4: 40, 8: 40.1}, doubt=0.05)
    jobs = [a_job(number * 7200, curve, mib=10_000) for number in range(100)]
    found = asked(jobs, 1, 2, 4, 8)
    assert found.pool == 4
    assert "4 I/O nodes save" in to_text(found).splitlines()[0]


def test_two_jobs_at_once_are_worth_a_pool_for_both() -> None:
    curve = a_curve({0: 10, 4: 40})
    jobs = [a_job(number // 2 * 7200, curve, mib=10_000) for number in range(40)]
    found = asked(jobs, 4, 8, 16)
    assert found.pool == 8


def test_where_io_nodes_help_nobody_the_answer_is_zero_and_the_interval_contains_no_gain() -> None:
    # Bandwidths with and without I/O nodes are equal but for the doubt about them.
    curves = [a_curve({0: 50, 1: 50, 2: 50, 4: 50}, doubt=0.1) for _ in range(5)]
    jobs = [a_job(number * 3600, curves[number % 5], mib=9000) for number in range(200)]
    found = asked(jobs, 2, 4)
    gain = arm_of(found, "ioncast", 4).saved_hours
    assert gain is not None
    assert gain.low <= 0 <= gain.high
    assert found.pool == 0
    assert to_text(found).startswith("No I/O nodes are worth their place")


def test_where_io_nodes_make_all_slower_none_are_given() -> None:
    curve = a_curve({0: 100, 1: 20, 2: 40}, doubt=0.05)
    found = asked([a_job(number * 600, curve, mib=9000) for number in range(50)], 2)
    assert found.pool == 0
    assert arm_of(found, "ioncast", 2).io_hours == arm_of(found, "direct", 2).io_hours
    assert arm_of(found, "static", 2).io_hours.value > arm_of(found, "direct", 2).io_hours.value


def test_a_job_without_a_log_keeps_its_recorded_time_in_all_arms() -> None:
    known, unknown = a_job(0, a_curve({0: 10, 2: 40}), mib=3600), a_job(9000, None, compute_s=7200)
    found = asked([known, unknown], 2)
    alone = asked([known], 2)
    for arm in found.arms:
        without = arm_of(alone, arm.arm, 2)
        assert arm.hours.value == pytest.approx(without.hours.value + 4 * 2)
        assert arm.io_hours.value == pytest.approx(without.io_hours.value)
    assert found.unknown_share == pytest.approx(8 / found.hours)
    assert [(each.application, each.reason, each.jobs) for each in found.unknown] == [
        ("app", "no log", 1)
    ]


def test_a_job_whose_decision_rests_on_too_little_gets_the_static_share() -> None:
    # 4 of 8 nodes: a share of 2 of 4 I/O nodes, although 4 seem faster.
    unsure = a_curve({0: 10, 2: 20, 4: 40}, is_sure=False)
    found = asked([a_job(0, unsure, mib=3600, nodes=4)], 4, nodes=8)
    assert arm_of(found, "ioncast", 4).io_hours == arm_of(found, "static", 4).io_hours
    assert arm_of(found, "best", 4).io_hours.value == pytest.approx(90 / 3600)


def test_without_cores_hours_are_of_nodes() -> None:
    found = asked([a_job(0, a_curve({0: 10, 2: 40}), nodes=3, cores=None, mib=10)], 2)
    assert found.unit == "node-hours"
    assert found.hours == pytest.approx(3 * 101 / 3600)


def test_without_measured_direct_access_there_is_no_gain_to_tell() -> None:
    curve = a_curve({1: 10, 2: 40})
    found = asked([a_job(0, curve, mib=100)], 2)
    assert found.pool is None
    assert {arm.arm for arm in found.arms} == {"static", "ioncast", "best"}
    assert all(arm.saved_hours is None for arm in found.arms)
    assert "Direct access was not measured" in to_text(found)


def test_the_machine_has_as_many_nodes_as_the_jobs_had_at_once() -> None:
    curve = a_curve({0: 10, 2: 40})
    # Two jobs of 3 and 4 nodes at once; a third one starts when the first one ends.
    jobs = [a_job(0, curve, nodes=3), a_job(50, curve, nodes=4), a_job(100, curve, nodes=2)]
    assert asked(jobs, 2).nodes == 7
    with pytest.raises(InputError, match="has 4 nodes, but the machine has 3"):
        asked(jobs, 2, nodes=3)


def test_nothing_is_told_of_a_queue_of_which_nothing_is_known() -> None:
    without_log = a_job(0, None)
    with pytest.raises(InputError, match="no job of the queue has a log in the store"):
        asked([without_log], 2)
    with pytest.raises(InputError, match="of no job of the queue can be predicted"):
        asked([without_log, replace(without_log, reason="no benchmark")], 2)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.tuples(st.integers(0, 3 * DAY_S), st.integers(0, 3), st.floats(0, 1e4), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_no_arm_is_faster_than_the_best_and_direct_access_saves_nothing(
    rows: list[tuple[int, int, float, bool]],
) -> None:
    curves = [
        a_curve({0: 10, 1: 5 * (place + 1), 2: 20, 4: 30 - 9 * place}, 0.1, is_sure=place < 2)
        for place in range(3)
    ]
    jobs = [
        a_job(submit_s, curves[place] if place < 3 else None, mib=mib, nodes=2 if is_large else 1)
        for submit_s, place, mib, is_large in sorted(rows)
    ]
    if not any(each.curve for each in jobs):
        return
    found = asked(jobs, 4)
    best = arm_of(found, "best", 4)
    for arm in found.arms:
        assert arm.io_hours.value >= best.io_hours.value - 1e-9
        assert arm.io_hours.low >= 0
    saved = arm_of(found, "direct", 4).saved_hours
    assert saved is not None
    assert (saved.value, saved.low, saved.high) == (0, 0, 0)
