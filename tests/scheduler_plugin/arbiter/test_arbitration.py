"""The arbiter's plan for jobs as Slurm describes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.arbiter.arbitration import Change, decisions_of, plan, releases
from scheduler_plugin.arbiter.heartbeat import HOLD_S
from scheduler_plugin.settings import ArbitrateSettings
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.slurm.licences import licence_count

NOW_S = 1_800_000_000.0
# Curves that rise to the end, that are best with one I/O node, and with direct access.
RISING = {0: 100.0, 1: 110.0, 2: 200.0, 4: 400.0, 8: 500.0}
ONE = {0: 100.0, 1: 300.0, 2: 290.0, 4: 280.0, 8: 270.0}
DIRECT = {0: 500.0, 1: 100.0, 2: 150.0, 4: 200.0, 8: 250.0}
# Without direct access.
FORWARDED = {2: 100.0, 4: 200.0}
CURVES = {
    "rising": RISING,
    "one": ONE,
    "direct": DIRECT,
    "forwarded": FORWARDED,
    "slow": {2: 1.0, 4: 10.0},
    "large": {4: 100.0, 8: 200.0},
    "unknown": {},
}
POOL = 8


def waiting(number: int, decision: str, *, held: bool = True, **other: Any) -> Job:
    """A job that the plugin holds by a begin time, or one that waits for licences."""
    begins_s = int(NOW_S) + 290 if held else int(NOW_S) - 10
    job = Job(
        id=number,
        user="alice",
        name="restart",
        partition="batch",
        state="PENDING",
        reason="BeginTime" if held else "Licenses",
        is_held=False,
        priority=1000,
        submitted_s=int(NOW_S) - 10,
        started_s=None,
        ended_s=None,
        nodes=4,
        tasks=16,
        licenses="ionode:8",
        admin_comment=f"ioncast:{decision}{f':held until:{begins_s}' if held else ''}",
        begins_s=begins_s,
    )
    return replace(job, **other)


def running(number: int, io_nodes: int) -> Job:
    licenses = f"ionode:{io_nodes}"
    other = {"state": "RUNNING", "reason": "None", "licenses": licenses, "admin_comment": ""}
    return waiting(number, "", held=False, **other)


def planned(*jobs: Job, pool: int = POOL, now_s: float = NOW_S, **settings: Any) -> list[Change]:
    limits = Limits("ionode", pool, qos={"small": 3})
    return plan(jobs, CURVES, limits, ArbitrateSettings(**settings), now_s)


def applied(jobs: list[Job], changes: list[Change]) -> list[Job]:
    """The jobs after the changes."""
    by_id = {change.job.id: change for change in changes}
    return [
        replace(
            job,
            licenses=by_id[job.id].licenses,
            begins_s=int(NOW_S) if by_id[job.id].is_release else job.begins_s,
            reason="Licenses",
        )
        if job.id in by_id
        else job
        for job in jobs
    ]


def test_held_jobs_are_released_with_what_is_best_for_all() -> None:
    changes = planned(waiting(1, "rising"), waiting(2, "one"), waiting(3, "direct"))
    # Pool of 8: the job "one" gains most from 1; of the other 7 "rising" can use 4.
    assert {each.job.id: each.licenses for each in changes} == {1: "ionode:4", 2: "ionode:1", 3: ""}
    assert all(each.is_release for each in changes)
    assert "400 MiB/s" in changes[0].why


def test_io_nodes_of_running_jobs_are_not_given_again() -> None:
    [change] = planned(waiting(1, "rising"), running(2, 5))
    assert change.licenses == "ionode:2"
    [change] = planned(waiting(1, "rising"), running(2, POOL + 1))
    assert change.licenses == ""


def test_other_licences_stay() -> None:
    [change] = planned(waiting(1, "one", licenses="matlab:2,ionode:8"))
    assert change.licenses == "matlab:2,ionode:1"


def test_a_job_that_waits_for_its_licences_gets_others_where_that_is_better() -> None:
    job = waiting(1, "rising", held=False)
    [change] = planned(job, running(2, 4))
    assert (change.licenses, change.is_release) == ("ionode:4", False)
    assert planned(job) == []


def test_a_job_is_not_changed_for_little() -> None:
    job = waiting(1, "one", held=False, licenses="ionode:2")
    assert planned(job, minimum_gain=0.05) == []
    [change] = planned(job, minimum_gain=0.01)
    assert change.licenses == "ionode:1"


def test_jobs_of_others_are_left_alone() -> None:
    asked_itself = waiting(1, "", held=False, admin_comment="")
    held_by_its_user = waiting(2, "one", held=False, is_held=True, reason="JobHeldUser")
    held_while_it_was_held = waiting(6, "one", is_held=True, priority=0, reason="JobHeldUser")
    begins_later = waiting(7, "one", begins_s=int(NOW_S) + 3600)
    begins_sooner = waiting(8, "one", begins_s=int(NOW_S) + 60)
    begins_later_for_no_reason_yet = waiting(9, "one", begins_s=int(NOW_S) + 3600, reason="None")
    waits_for_another = waiting(3, "one", held=False, reason="Dependency")
    runs = replace(running(4, 1), admin_comment="ioncast:one")
    of_users = held_by_its_user, held_while_it_was_held, begins_later, begins_sooner
    of_users = *of_users, begins_later_for_no_reason_yet
    jobs = asked_itself, waits_for_another, runs, *of_users
    assert planned(*jobs) == []
    assert decisions_of(jobs, NOW_S) == []
    assert releases(jobs, NOW_S) == []


def test_a_hold_that_has_ended_by_itself_is_not_ended_again() -> None:
    over = int(NOW_S) - 1
    comment = f"ioncast:rising:held until:{over}"
    job = waiting(1, "rising", held=False, admin_comment=comment, begins_s=over)
    assert planned(job) == []
    assert releases([job], NOW_S) == []
    [change] = planned(job, running(2, 4))
    assert (change.licenses, change.is_release) == ("ionode:4", False)


def test_the_last_decision_is_asked_for_first() -> None:
    # If a decision is stored between two questions, it is older than those that were found.
    earlier, later = int(NOW_S) - 20, int(NOW_S) - 5
    jobs = [
        waiting(2, "one", submitted_s=earlier),
        waiting(1, "rising", submitted_s=later),
        waiting(3, "direct", submitted_s=earlier),
        waiting(4, "one", submitted_s=earlier),
    ]
    assert decisions_of(jobs, NOW_S) == ["rising", "one", "direct"]


def test_a_job_of_which_nothing_is_known_is_released_as_it_was_decided() -> None:
    [change] = planned(waiting(1, "unknown"))
    assert (change.licenses, change.is_release) == ("ionode:8", True)


def test_a_decision_that_cannot_be_read_is_waited_for_a_minute() -> None:
    job = waiting(1, "elsewhere")
    assert planned(job) == []
    [change] = planned(job, now_s=NOW_S + 60)
    assert (change.licenses, change.is_release) == ("ionode:8", True)


def test_jobs_that_cannot_run_yet_do_not_share_and_have_slurms_order() -> None:
    jobs = [waiting(number, "rising", submitted_s=int(NOW_S) + number) for number in range(3)]
    changes = planned(*jobs, machine_nodes=8)
    assert all(each.is_release for each in changes)
    assert [(each.job.id, each.licenses) for each in changes] == [
        (0, "ionode:4"),
        (1, "ionode:4"),
        (2, "ionode:8"),
    ]
    assert planned(*applied(jobs, changes), machine_nodes=8) == []


def test_a_job_for_which_none_are_left_waits_in_slurms_order() -> None:
    job = waiting(1, "forwarded")
    busy = running(2, POOL)
    [change] = planned(job, busy)
    assert (change.licenses, change.is_release) == ("ionode:2", True)
    assert planned(*applied([job, busy], [change])) == []


@pytest.mark.promise("slurm-too-few-io-nodes")
def test_no_job_waits_for_the_sum_of_the_others() -> None:
    # Of 4 I/O nodes both jobs can have the 2 that they need; one job alone would have 200 MiB/s.
    jobs = waiting(1, "forwarded"), waiting(2, "slow")
    changes = planned(*jobs, pool=4)
    assert {each.job.id: each.licenses for each in changes} == {1: "ionode:2", 2: "ionode:2"}


def test_a_job_that_gets_no_io_nodes_is_released_with_its_smallest_number() -> None:
    changes = planned(waiting(1, "forwarded"), waiting(2, "slow"), pool=3)
    assert [each.licenses for each in changes] == ["ionode:2", "ionode:2"]
    assert [each for each in changes if each.why == "no I/O nodes are free now"]


def test_a_site_may_let_slow_jobs_count_as_much_as_fast_ones() -> None:
    # With 2 more I/O nodes one job gains 100 MiB/s, and the other 9, which is more of its best.
    jobs = waiting(1, "forwarded"), waiting(2, "slow")
    for objective, expected in [
        ("sum", {1: "ionode:4", 2: "ionode:2"}),
        ("proportional", {1: "ionode:2", 2: "ionode:4"}),
    ]:
        changes = planned(*jobs, pool=6, objective=objective)
        assert {each.job.id: each.licenses for each in changes} == expected


def test_no_job_gets_more_than_slurms_limits() -> None:
    jobs = waiting(1, "rising", qos="small"), waiting(2, "rising", qos="large")
    changes = planned(*jobs)
    assert {each.job.id: each.licenses for each in changes} == {1: "ionode:2", 2: "ionode:4"}
    [change] = planned(waiting(1, "rising", qos="small", held=False, licenses="ionode:4"))
    assert change.licenses == "ionode:2"


def test_a_job_whose_limit_is_below_its_smallest_number_is_released_as_decided() -> None:
    [change] = planned(waiting(1, "large", qos="small", licenses="ionode:3"))
    assert (change.licenses, change.is_release) == ("ionode:3", True)
    assert change.why == "as decided: Slurm's limits are below its smallest number"


def test_an_array_that_has_begun_is_left_alone() -> None:
    rest = waiting(1, "one", held=False, array_job_id=1)
    begun = replace(running(2, 4), array_job_id=1, array_task_id=7)
    assert planned(rest, begun) == []
    assert len(planned(rest, replace(begun, state="COMPLETED"))) == 1


def test_alternatives_that_a_user_asks_for_later_are_left_alone() -> None:
    held = waiting(1, "one", licenses="a:1|b:1")
    waits = waiting(2, "one", held=False, licenses="a:1|b:1")
    first, other = planned(held, waits, waiting(3, "one"))
    assert (first.job.id, first.licenses, first.is_release) == (1, "a:1|b:1", True)
    assert (other.job.id, other.licenses) == (3, "ionode:1")


def test_a_job_larger_than_the_machine_is_not_forgotten() -> None:
    assert len(planned(waiting(1, "rising", nodes=100), machine_nodes=8)) == 1


def test_a_job_that_waits_for_another_is_not_held_as_well() -> None:
    [change] = planned(waiting(1, "one", reason="Dependency"))
    assert change.is_release


def test_all_holds_end_with_the_arbiter() -> None:
    [change] = releases([waiting(1, "one"), waiting(2, "one", held=False), running(3, 1)], NOW_S)
    assert (change.job.id, change.licenses) == (1, "ionode:8")


@given(
    decisions=st.lists(st.sampled_from([*CURVES, "elsewhere"]), min_size=1, max_size=8),
    objective=st.sampled_from(["sum", "proportional"]),
)
def test_no_hold_outlives_half_of_its_time_while_the_arbiter_runs(
    decisions: list[str], objective: str
) -> None:
    """So the arbiter never needs to prolong a hold."""
    jobs = [
        waiting(number, decision, submitted_s=int(NOW_S) - HOLD_S // 2)
        for number, decision in enumerate(decisions)
    ]
    changes = planned(*jobs, objective=objective)
    assert {change.job.id for change in changes if change.is_release} == {job.id for job in jobs}


jobs_of_all_kinds = st.lists(
    st.one_of(
        st.builds(
            waiting,
            st.just(0),
            st.sampled_from(["unknown", *sorted(CURVES.keys() - {"forwarded", "slow", "large"})]),
            held=st.booleans(),
            nodes=st.integers(1, 64),
            priority=st.integers(0, 10_000),
            licenses=st.sampled_from(["", "ionode:1", "matlab,ionode:8", "ionode:4"]),
        ),
        st.builds(running, st.just(0), st.integers(0, 4)),
    ),
    max_size=8,
).map(lambda jobs: [replace(job, id=number) for number, job in enumerate(jobs, start=1)])


@given(
    jobs=jobs_of_all_kinds,
    pool=st.integers(1, 16),
    weight=st.sampled_from(["none", "nodes", "priority"]),
    objective=st.sampled_from(["sum", "proportional"]),
)
def test_a_plan_for_the_result_of_a_plan_changes_nothing_and_fits_the_pool(
    jobs: list[Job],
    pool: int,
    weight: str,
    objective: str,
) -> None:
    told: dict[str, Any] = {
        "weight": weight,
        "objective": objective,
        "pool": pool,
    }
    changes = planned(*jobs, **told)
    after = applied(jobs, changes)
    if weight == "none":
        assert planned(*after, **told) == []
    assert not any(change.job.state == "RUNNING" for change in changes)
    ours = {change.job.id for change in changes if change.job.admin_comment.count("unknown") == 0}
    given_out = sum(licence_count(job.licenses, "ionode") or 0 for job in after if job.id in ours)
    taken = sum(
        licence_count(job.licenses, "ionode") or 0 for job in jobs if job.state == "RUNNING"
    )
    assert given_out <= max(pool - taken, 0)
