from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.scheduling.measures import in_use, measure
from ioncast.worth.replay import Schedule
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import Workload

Make = Callable[..., Workload]


def test_the_measures_of_two_jobs(a_workload: Make) -> None:
    # 300 MiB in 10 s and 100 MiB in 30 s: 10 MiB/s. The jobs wait 0 s and 40 s, and end after
    # 20 s and 100 s. Their recorded run times are 40 s and 2 s, which counts as 10 s: slowdowns of
    # 0.5 and 10.
    work = a_workload([(0, 2, 10, 300, 0), (100, 1, 30, 100, 0)], [{1: 1.0, 2: 2.0}])
    work = replace(work, recorded_s=np.array([40.0, 2.0]))
    schedule = Schedule(
        start_s=np.array([0.0, 140.0]),
        end_s=np.array([20.0, 200.0]),
        io_nodes=np.array([2, 1]),
        io_s=np.array([10.0, 30.0]),
        held_up=np.array([False, True]),
    )
    found = measure("mckp", work, schedule, Machine(4, 5))
    assert found.policy == "mckp"
    assert found.jobs == 2
    assert found.bandwidth_mib_s == 10
    assert (found.io_mean_s, found.io_median_s, found.io_p90_s) == (20, 20, pytest.approx(28))
    assert (found.waiting_mean_s, found.waiting_p90_s) == (20, pytest.approx(36))
    assert found.turnaround_mean_s == 60
    assert found.slowdown_mean == pytest.approx((0.5 + 10) / 2)
    assert found.held_up_share == 0.5
    assert found.makespan_s == 200
    # Two nodes for 20 s and one for 60 s, of four nodes for 200 s. The same with five I/O nodes.
    assert found.nodes_used == pytest.approx(100 / 800)
    assert found.pool_used == pytest.approx(100 / 1000)


def test_jobs_without_io_have_no_bandwidth(a_workload: Make) -> None:
    work = a_workload([(0, 1, 10, 0, 0)], [{1: 1.0}])
    zero, ten = np.array([0.0]), np.array([10.0])
    schedule = Schedule(zero, ten, np.array([1]), zero, np.array([False]))
    assert measure("one", work, schedule, Machine(1, 1)).bandwidth_mib_s == 0


spans = st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(0, 9))


@given(st.lists(spans, min_size=1, max_size=20), st.integers(1, 30))
def test_the_nodes_in_use_add_up_to_those_of_the_jobs(
    jobs: list[tuple[int, int, int]], intervals: int
) -> None:
    start, length, counts = (np.array(column) for column in zip(*jobs, strict=True))
    edges = np.linspace(0, 100, intervals + 1)
    used = in_use(start.astype(float), (start + length).astype(float), counts, edges)
    assert (used >= -1e-9).all()
    assert (used * np.diff(edges)).sum() == pytest.approx((length * counts).sum())
