"""Queues worked out by hand, properties of every queue, and queueing theory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.worth.policies import POLICIES
from ioncast.worth.policy import Policy
from ioncast.worth.replay import Schedule, replay
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import Workload
from tests.support.examples import examples

ANY = {1: 10.0}
Make = Callable[..., Workload]


def asking(*io_nodes: int) -> Policy:
    """A policy that gives the jobs these numbers of I/O nodes."""
    return Policy("as told", "", lambda work, machine: np.array(io_nodes, dtype=np.int64))


def test_a_job_runs_for_its_compute_time_and_its_bytes_over_its_bandwidth(a_workload: Make) -> None:
    # 100 MiB at 25 MiB/s after 6 s.
    work = a_workload([(5, 1, 6, 100, 0)], [{2: 25.0}])
    found = replay(work, Machine(1, 2), POLICIES["best"])
    assert (found.start_s[0], found.io_s[0], found.end_s[0]) == (5, 4, 15)
    assert found.io_nodes[0] == 2


def test_two_jobs_with_a_pool_of_one_run_one_after_the_other(a_workload: Make) -> None:
    # There are compute nodes for both, but the second job waits for the I/O node.
    work = a_workload([(0, 1, 6, 40, 0), (1, 1, 6, 40, 0)], [ANY])
    found = replay(work, Machine(2, 1), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10]
    assert found.end_s.tolist() == [10, 20]
    assert found.held_up.tolist() == [False, True]


def test_a_job_that_waits_for_compute_nodes_is_not_held_up_by_the_pool(a_workload: Make) -> None:
    work = a_workload([(0, 2, 6, 40, 0), (1, 1, 6, 40, 0)], [ANY])
    found = replay(work, Machine(2, 1), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10]
    assert not found.held_up.any()


def test_jobs_behind_the_first_start_earlier_only_if_they_do_not_delay_it(
    a_workload: Make,
) -> None:
    # Four nodes. A holds three until 10. B needs all four, so it starts at 10 and ends at 20.
    # C runs for 5 s on the free node and ends before. D would run for 20 s and delay B.
    rows = [(0, 3, 10, 0, 0), (1, 4, 10, 0, 0), (2, 1, 5, 0, 0), (3, 1, 20, 0, 0)]
    found = replay(a_workload(rows, [ANY]), Machine(4, 9), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10, 2, 20]


def test_a_long_job_starts_earlier_on_nodes_that_the_first_does_not_need(a_workload: Make) -> None:
    # As before, but B needs only three of the four nodes, so D can run beside it.
    rows = [(0, 3, 10, 0, 0), (1, 3, 10, 0, 0), (3, 1, 20, 0, 0)]
    found = replay(a_workload(rows, [ANY]), Machine(4, 9), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10, 3]


def test_backfill_leaves_the_first_its_io_nodes(a_workload: Make) -> None:
    # Nodes for all, four I/O nodes. A holds three until 10. B needs four, so it starts at 10 and
    # ends at 20. C takes the free one for 5 s. D would hold it for 20 s and delay B.
    rows = [(0, 1, 10, 0, 0), (1, 1, 10, 0, 0), (2, 1, 5, 0, 0), (3, 1, 20, 0, 0)]
    work = a_workload(rows, [dict.fromkeys((1, 3, 4), 10.0)])
    found = replay(work, Machine(9, 4), asking(3, 4, 1, 1))
    assert found.start_s.tolist() == [0, 10, 2, 20]
    assert found.held_up.tolist() == [False, True, False, True]


def test_a_job_that_runs_over_its_limit_is_waited_for(a_workload: Make) -> None:
    # A's limit is 5, but it ends at 10. B is first since 1. When A is over its limit, it may end at
    # any time, so even the short C could delay B.
    rows = [(0, 3, 10, 0, 0), (1, 4, 10, 0, 0), (6, 1, 2, 0, 0)]
    found = replay(a_workload(rows, [ANY], [5, 10, 2]), Machine(4, 9), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10, 20]


def test_a_job_that_arrives_when_another_ends_gets_its_nodes(a_workload: Make) -> None:
    rows = [(0, 1, 10, 0, 0), (10, 1, 10, 0, 0)]
    found = replay(a_workload(rows, [ANY]), Machine(1, 1), POLICIES["one"])
    assert found.start_s.tolist() == [0, 10]


STEEP, FLAT = {1: 10.0, 4: 40.0, 8: 50.0}, {1: 10.0, 4: 12.0}


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        # 40 + 12 MiB/s. The better 50 + 10 would need 9 I/O nodes.
        (8, [4, 4]),
        # 50 + 10 are more than 40 + 12.
        (9, [8, 1]),
        # 40 + 10 are the most that five give.
        (5, [4, 1]),
        # The first job alone would reach 40 with all four, but both must start.
        (4, [1, 1]),
    ],
)
def test_arbitration_divides_the_pool_among_jobs_that_start_together(
    a_workload: Make, pool: int, expected: list[int]
) -> None:
    work = a_workload([(0, 1, 1, 1, 0), (0, 1, 1, 1, 1)], [STEEP, FLAT])
    found = replay(work, Machine(2, pool), POLICIES["mckp"])
    assert found.start_s.tolist() == [0, 0]
    assert found.io_nodes.tolist() == expected


def test_arbitration_leaves_running_jobs_what_they_have(a_workload: Make) -> None:
    # A gets 8 of 9 while it is alone, so one is left for B.
    work = a_workload([(0, 1, 9, 9, 0), (1, 1, 1, 1, 0)], [STEEP])
    found = replay(work, Machine(2, 9), POLICIES["mckp"])
    assert found.io_nodes.tolist() == [8, 1]


def test_arbitration_leaves_the_io_nodes_reserved_for_the_first_job(a_workload: Make) -> None:
    # Three nodes, four I/O nodes. L (30 s) and A (10 s) start with one I/O node each. B needs two
    # nodes and at least two I/O nodes, so it starts at 10. L could use both free I/O nodes, but
    # then at 10 only A's one would be free for B.
    rows = [(0, 1, 30, 0, 0), (0, 1, 10, 0, 1), (0, 2, 10, 0, 2)]
    work = a_workload(rows, [{1: 1.0, 2: 20.0, 3: 40.0}, ANY, {2: 10.0}])
    found = replay(work, Machine(3, 4), POLICIES["mckp"])
    assert found.io_nodes.tolist() == [2, 1, 2]
    assert found.start_s.tolist() == [0, 0, 10]


def test_with_direct_access_no_job_waits_for_the_pool(a_workload: Make) -> None:
    work = a_workload([(0, 1, 6, 40, 0)] * 3, [{0: 10.0, 1: 20.0}])
    found = replay(work, Machine(3, 1), POLICIES["direct"])
    assert found.end_s.tolist() == [10, 10, 10]


# Properties of every queue.

OPTIONS = (0, 1, 2, 4, 8)
bandwidths = st.floats(0.5, 1000)
curves_ = st.lists(
    st.fixed_dictionaries({1: bandwidths}, optional=dict.fromkeys(OPTIONS[2:], bandwidths)),
    min_size=1,
    max_size=3,
)
quantities = st.integers(0, 20).map(float)
jobs = st.tuples(
    quantities,  # submitted
    st.integers(1, 6),  # nodes
    st.integers(1, 20).map(float),  # compute time
    quantities,  # MiB
    st.integers(0, 2),  # curve
)


def in_use_at_most(found: Schedule, counts: np.ndarray) -> int:
    """The most nodes in use at any time; a job that ends frees its nodes before others start."""
    events = sorted(
        [(end, -int(count)) for end, count in zip(found.end_s, counts, strict=True)]
        + [(start, int(count)) for start, count in zip(found.start_s, counts, strict=True)]
    )
    return max(np.cumsum([count for _, count in events]).tolist())


@settings(max_examples=examples(300))
@given(
    rows=st.lists(jobs, min_size=1, max_size=25),
    curves=curves_,
    factor=st.sampled_from([0.5, 1.0, 3.0]),
    pool=st.integers(1, 12),
    policy=st.sampled_from([name for name in POLICIES if name != "direct"]),
)
def test_all_jobs_run_once_and_never_use_more_than_the_machine_has(
    a_workload: Make,
    rows: list[tuple[float, int, float, float, int]],
    curves: list[dict[int, float]],
    factor: float,
    pool: int,
    policy: str,
) -> None:
    rows = [(*row[:4], row[4] % len(curves)) for row in sorted(rows)]
    limits = [factor * (row[2] + 1) for row in rows]
    machine = Machine(6, pool)
    work = a_workload(rows, [dict(sorted(curve.items())) for curve in curves], limits)
    found = replay(work, machine, POLICIES[policy])
    assert (found.start_s >= work.submit_s).all()
    assert in_use_at_most(found, work.nodes) <= machine.nodes
    assert in_use_at_most(found, found.io_nodes) <= machine.pool
    assert found.end_s - found.start_s == pytest.approx(work.compute_s + found.io_s)
    reached = [work.curves[c].mib_s[n] for c, n in zip(work.curve, found.io_nodes, strict=True)]
    assert found.io_s == pytest.approx(work.moved_mib / reached)


@given(rows=st.lists(jobs, min_size=1, max_size=25), policy=st.sampled_from(["one", "mckp"]))
def test_jobs_that_fill_the_machine_start_in_the_order_they_came(
    a_workload: Make, rows: list[tuple[float, int, float, float, int]], policy: str
) -> None:
    work = a_workload([(row[0], 6, *row[2:4], 0) for row in sorted(rows)], [ANY])
    found = replay(work, Machine(6, 3), POLICIES[policy])
    assert (np.diff(found.start_s) > 0).all()
    assert (found.start_s[1:] == np.maximum(found.end_s[:-1], work.submit_s[1:])).all()


@given(rows=st.lists(jobs, min_size=1, max_size=25), curves=curves_)
def test_with_io_nodes_for_all_best_and_arbitration_give_each_job_its_best(
    a_workload: Make,
    rows: list[tuple[float, int, float, float, int]],
    curves: list[dict[int, float]],
) -> None:
    rows = [(*row[:4], row[4] % len(curves)) for row in sorted(rows)]
    work = a_workload(rows, [dict(sorted(curve.items())) for curve in curves])
    machine = Machine(6, 8 * len(rows))
    fastest = [max(work.curves[curve].mib_s.values()) for curve in work.curve]
    for policy in ("best", "mckp"):
        found = replay(work, machine, POLICIES[policy])
        assert found.io_s == pytest.approx(work.moved_mib / fastest)
        assert not found.held_up.any()


def simple_easy(
    rows: list[tuple[int, int, int]],
    asked: list[int],
    limits: list[int],
    machine: Machine,
    depth: int,
) -> list[int]:
    """Start times of jobs (submitted, nodes, run time): EASY, step by step for each second."""
    start: dict[int, int] = {}
    waiting: list[int] = []
    seen: set[int] = set()
    now = 0

    def left(when: int) -> tuple[int, int]:
        """Nodes and I/O nodes that will be free by the time limits of the running jobs."""
        held = [
            job
            for job in start
            if start[job] + rows[job][2] > now and start[job] + limits[job] > when
        ]
        return (
            machine.nodes - sum(rows[job][1] for job in held),
            machine.pool - sum(asked[job] for job in held),
        )

    def free_now() -> tuple[int, int]:
        held = [job for job in start if start[job] + rows[job][2] > now]
        return (
            machine.nodes - sum(rows[job][1] for job in held),
            machine.pool - sum(asked[job] for job in held),
        )

    def fits(job: int, free: tuple[int, int]) -> bool:
        return rows[job][1] <= free[0] and asked[job] <= free[1]

    while len(start) < len(rows):
        coming = [job for job, row in enumerate(rows) if row[0] == now]
        # Look only after a change: a job ended, or a new one is among the first.
        is_news = any(start[job] + rows[job][2] == now for job in start)
        waiting += coming
        is_news |= bool(coming) and not seen.issuperset(waiting[: depth + 1])
        while is_news and waiting and fits(waiting[0], free_now()):
            start[waiting.pop(0)] = now
        if is_news and waiting:
            seen |= set(waiting[: depth + 1])
            first = waiting[0]
            reserved = next(when for when in range(now, 10_000) if fits(first, left(when)))
            for job in waiting[1 : depth + 1]:
                nodes, io_nodes = left(reserved)
                beside = nodes - rows[first][1], io_nodes - asked[first]
                is_short = now + limits[job] <= reserved
                if fits(job, free_now()) and (is_short or fits(job, beside)):
                    start[job] = now
            waiting = [job for job in waiting if job not in start]
        now += 1
    return [start[job] for job in range(len(rows))]


small_jobs = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 8))


@settings(max_examples=examples(300))
@given(
    rows=st.lists(small_jobs, min_size=1, max_size=12),
    asked=st.lists(st.integers(1, 4), min_size=12, max_size=12),
    limits=st.lists(st.integers(1, 12), min_size=12, max_size=12),
    pool=st.integers(4, 7),
    depth=st.sampled_from([1, 3, 100]),
)
def test_jobs_start_when_a_simple_scheduler_starts_them(
    a_workload: Make,
    rows: list[tuple[int, int, int]],
    asked: list[int],
    limits: list[int],
    pool: int,
    depth: int,
) -> None:
    rows = sorted(rows)
    asked, limits = asked[: len(rows)], limits[: len(rows)]
    machine = Machine(6, pool)
    work = a_workload(
        [(*row, 0, 0) for row in rows],
        [dict.fromkeys(range(1, 5), 10.0)],
        [float(limit) for limit in limits],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioncast.worth.replay.DEPTH", depth)
        found = replay(work, machine, asking(*asked))
    assert found.start_s.tolist() == simple_easy(rows, asked, limits, machine, depth)


def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of the queue M/M/c, as a multiple of the mean service time (Erlang 1917)."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last) / (servers * (1 - load))


@pytest.mark.slow
@pytest.mark.parametrize("scarce", ["compute nodes", "I/O nodes"])
@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.7), (16, 0.85)])
def test_random_jobs_of_one_size_wait_as_long_as_queueing_theory_says(
    a_workload: Make, scarce: str, servers: int, load: float
) -> None:
    count = 100_000
    random = np.random.default_rng(7)
    submits = np.cumsum(random.exponential(1 / (servers * load), count)).tolist()
    runs = random.exponential(1, count).tolist()
    rows = [(submit, 1, run, 0.0, 0) for submit, run in zip(submits, runs, strict=True)]
    plenty = 10_000
    machine = Machine(servers, plenty) if scarce == "compute nodes" else Machine(plenty, servers)
    work = a_workload(rows, [ANY])
    found = replay(work, machine, POLICIES["one"])
    wait = float((found.start_s - work.submit_s).mean())
    assert wait == pytest.approx(erlang_c_wait(servers, load), rel=0.05)
