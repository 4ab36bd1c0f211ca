from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.curve.composing import (
    Bandwidth,
    Composition,
    PartWork,
    Point,
    compose,
    observed_mib_s,
)
from predictor.curve.estimates import DRAWS, Estimate, as_measured
from predictor.curve.overlap import timeline_of
from summario.phases.values import Phase

MIB = 1 << 20
# HACC-IO with direct access, RR-9366, Table 9.
TABLE_9 = (488.3, 526.2, 331.5, 41971.4, 409.7)


def composed(
    *work: tuple[float, Mapping[int, Sequence[float]]], io_nodes: Sequence[int] = (0,)
) -> Composition:
    """Compose parts of (MiB, measured curve); each is a phase, one after the other."""
    estimates = [as_measured(cells, io_nodes, np.random.default_rng(0)) for _, cells in work]
    return compose(
        [
            PartWork(i, round(mib * MIB), estimate, i)
            for i, ((mib, _), estimate) in enumerate(zip(work, estimates, strict=True))
        ],
        io_nodes,
        timeline_of([phase(start=2.0 * i) for i in range(len(work))]),
    )


def phase(start: float = 0.0, **told: Any) -> Phase:
    """Make a phase of all processes that lasts one second."""
    values: dict[str, Any] = {
        "job": 1,
        "start_seconds": start,
        "end_seconds": start + 1,
        "operation": "write",
        "rank": None,
        "processes": 8,
        "nprocs": 8,
        "bytes": 8,
        "io_time_seconds": 1.0,
        "api": "POSIX",
        "requests": 1,
        "spatiality": "contiguous",
        "file_access": "shared",
        "n_files": 1,
        "mode_processes": 8,
        "parts": (),
    }
    return Phase(**(values | told))


def point(*work: tuple[float, Sequence[float]]) -> Point:
    """Compose parts of (MiB, repetitions) at one number of I/O nodes."""
    [found] = composed(*((mib, {0: values}) for mib, values in work)).points([0])
    return found


@pytest.mark.parametrize(
    ("work", "bandwidth", "time"),
    [
        ([(100, [50])], 50, 2),
        # 100 MiB at 50 MiB/s take 2 s, 100 MiB at 100 MiB/s take 1 s.
        ([(100, [50]), (100, [100])], 200 / 3, 3),
        # With equal bytes the bandwidth is the harmonic mean.
        ([(64, [10]), (64, [20]), (64, [40])], statistics.harmonic_mean([10, 20, 40]), 11.2),
        # A slow part of few bytes takes most of the time.
        ([(1, [1]), (99, [99])], 50, 2),
        # A part without bytes takes no time.
        ([(100, [50]), (0, [3])], 50, 2),
    ],
)
def test_times_add_up(work: list[tuple[float, list[float]]], bandwidth: float, time: float) -> None:
    found = point(*work)
    assert found.time_s == pytest.approx(time)
    assert found.bandwidth_mib_s.mean == pytest.approx(bandwidth)


def test_one_repetition_leaves_nothing_uncertain() -> None:
    found = point((100, [50]), (7, [3])).bandwidth_mib_s
    assert found == Bandwidth(*[pytest.approx(107 / (2 + 7 / 3))] * 4)


def test_equal_repetitions_leave_nothing_uncertain() -> None:
    found = point((100, [50, 50, 50]), (100, [100, 100])).bandwidth_mib_s
    assert found == Bandwidth(*[pytest.approx(200 / 3)] * 4)


def expected_time(work: Sequence[tuple[float, Sequence[float]]]) -> float:
    return sum(mib * statistics.fmean(1 / value for value in values) for mib, values in work)


mibs = st.integers(1, 10**6)
bandwidths = st.lists(st.floats(0.1, 1e5), min_size=1, max_size=8)
works = st.lists(st.tuples(mibs, bandwidths), min_size=1, max_size=5)


@given(work=works)
@settings(deadline=None)
def test_the_mean_time_is_the_sum_of_the_parts_mean_times(
    work: list[tuple[int, list[float]]],
) -> None:
    found = point(*work)
    assert found.time_s == pytest.approx(expected_time(work))


@given(work=works)
@settings(deadline=None)
def test_the_order_of_the_parts_does_not_matter_for_the_mean(
    work: list[tuple[int, list[float]]],
) -> None:
    there, back = point(*work), point(*work[::-1])
    assert back.time_s == pytest.approx(there.time_s, rel=1e-9)
    assert back.bandwidth_mib_s.mean == pytest.approx(there.bandwidth_mib_s.mean, rel=1e-9)


def test_a_part_cut_in_two_takes_as_long_as_the_whole() -> None:
    values = [10.0, 50.0, 90.0]
    assert point((30, values), (70, values)).time_s == pytest.approx(point((100, values)).time_s)


@given(work=works)
@settings(deadline=None)
def test_a_bandwidth_is_between_the_slowest_and_the_fastest_repetition(
    work: list[tuple[int, list[float]]],
) -> None:
    found = point(*work).bandwidth_mib_s
    everything = [value for _, values in work for value in values]
    low, high = min(everything) * (1 - 1e-9), max(everything) * (1 + 1e-9)
    assert low <= found.p10 <= found.median <= found.p90 <= high
    assert low <= found.mean <= high


@given(work=works, factor=st.integers(2, 1000))
@settings(deadline=None)
def test_more_of_the_same_takes_longer_at_the_same_bandwidth(
    work: list[tuple[int, list[float]]], factor: int
) -> None:
    one, many = point(*work), point(*((mib * factor, values) for mib, values in work))
    assert many.time_s == pytest.approx(one.time_s * factor)
    assert vars_of(many.bandwidth_mib_s) == pytest.approx(vars_of(one.bandwidth_mib_s))


@given(work=works, factor=st.integers(2, 1000))
@settings(deadline=None)
def test_a_faster_system_is_faster_by_as_much(
    work: list[tuple[int, list[float]]], factor: int
) -> None:
    one = point(*work)
    fast = point(*((mib, [value * factor for value in values]) for mib, values in work))
    assert fast.time_s == pytest.approx(one.time_s / factor)
    assert vars_of(fast.bandwidth_mib_s) == pytest.approx(
        {name: value * factor for name, value in vars_of(one.bandwidth_mib_s).items()}
    )


def vars_of(bandwidth: Bandwidth) -> dict[str, float]:
    return {name: getattr(bandwidth, name) for name in ("p10", "median", "mean", "p90")}


def test_two_populations_stay_two() -> None:
    found = point((100, [10] * 5 + [100] * 5)).bandwidth_mib_s
    assert (found.p10, found.p90) == (pytest.approx(10), pytest.approx(100))


def test_points_come_in_the_order_in_which_they_are_asked_for() -> None:
    cells: Mapping[int, list[float]] = {0: [50], 1: [25], 8: [100]}
    found = composed((100, cells), io_nodes=[8, 0]).points([8, 0])
    assert [(p.io_nodes, p.time_s) for p in found] == [
        (8, pytest.approx(1)),
        (0, pytest.approx(2)),
    ]


def test_the_same_work_gives_the_same_numbers() -> None:
    work = [(100.0, [10.0, 20.0, 35.0]), (50.0, [5.0, 7.0])]
    assert point(*work) == point(*work)


def test_points_are_measured_where_they_are_said_to_be() -> None:
    cells = {0: [50.0], 1: [25.0], 8: [100.0]}
    found = composed((100, cells), io_nodes=[0, 1, 8])
    assert [p.basis for p in found.points({0, 8})] == ["measured", "model", "measured"]
    assert [p.io_nodes for p in found.only({1, 8}).points(())] == [1, 8]
    assert found.only({1, 8}).points({8})[1] == found.points({8})[2]


def test_runs_scatter_around_the_mean_of_times() -> None:
    work = [(30.0, [10.0, 20.0, 35.0]), (70.0, [5.0, 7.0])]
    runs = 100 / composed(*((mib, {0: values}) for mib, values in work)).runs_mib_s[:, 0]
    variance = sum(mib**2 * statistics.pvariance([1 / v for v in vs]) for mib, vs in work)
    assert abs(runs.mean() - expected_time(work)) <= 5 * math.sqrt(variance / DRAWS)
    assert runs.std() == pytest.approx(math.sqrt(variance), rel=0.1)


def test_phases_of_one_run_go_the_same_way_through_the_system() -> None:
    estimate = as_measured({0: TABLE_9}, [0], np.random.default_rng(0))
    eight = [PartWork(i, 100 * MIB, estimate, i) for i in range(8)]
    timeline = timeline_of([phase(start=2.0 * i) for i in range(8)])
    runs = compose(eight, [0], timeline).runs_mib_s[:, 0]
    assert ((runs > 300) & (runs < 600) | (runs > 30_000)).all()
    assert np.mean(runs > 30_000) == pytest.approx(1 / 5, abs=0.04)


def test_noise_is_drawn_for_each_phase_and_averages_out() -> None:
    estimate = as_measured({0: [80.0, 100.0, 120.0]}, [0], np.random.default_rng(0))
    spreads = []
    for count in (1, 16):
        work = [PartWork(i, 100 * MIB, estimate, i) for i in range(count)]
        timeline = timeline_of([phase(start=2.0 * i) for i in range(count)])
        spreads.append(np.log(compose(work, [0], timeline).runs_mib_s).std())
    assert spreads[1] == pytest.approx(spreads[0] / 4, rel=0.15)


def test_doubt_is_shared_by_the_phases_that_rest_on_it_and_does_not_average_out() -> None:
    doubt = np.random.default_rng(0).normal(0, 0.3, (DRAWS, 1))
    estimate = Estimate(
        typical_mib_s=np.array([100.0]),
        doubt=doubt,
        run=np.zeros((DRAWS, 1)),
        mode=np.zeros((DRAWS, 1), int),
        noise=((np.zeros(1),),),
        is_mean=np.ones(1, bool),
    )
    work = [PartWork(i, 100 * MIB, estimate, i) for i in range(16)]
    found = compose(work, [0], timeline_of([phase(start=2.0 * i) for i in range(16)]))
    assert np.log(found.expected_mib_s[:, 0] / 100) == pytest.approx(doubt[:, 0])
    assert found.runs_mib_s == pytest.approx(found.expected_mib_s)


@pytest.mark.parametrize(("processes", "seconds"), [(8, 5.0), (4, 3.0), (1, 3.0)])
def test_phases_of_other_processes_at_the_same_time_are_not_added_up(
    processes: int, seconds: float
) -> None:
    estimates = [as_measured({0: [v]}, [0], np.random.default_rng(0)) for v in (50.0, 100 / 3)]
    work = [PartWork(i, 100 * MIB, estimate, i) for i, estimate in enumerate(estimates)]
    timeline = timeline_of([phase(processes=processes), phase(processes=processes)])
    [found] = compose(work, [0], timeline).points([0])
    assert found.time_s == pytest.approx(seconds)


def test_parts_of_one_phase_add_up() -> None:
    estimates = [as_measured({0: [v]}, [0], np.random.default_rng(0)) for v in (50.0, 100.0)]
    work = [PartWork(0, 100 * MIB, estimate, 0) for estimate in estimates]
    [found] = compose(work, [0], timeline_of([phase()])).points([0])
    assert found.time_s == pytest.approx(3)


# The bandwidth of a run


def test_a_run_got_all_its_bytes_over_the_time_of_its_phases() -> None:
    first = phase(bytes=100 * MIB, io_time_seconds=2.0)
    second = phase(start=5.0, bytes=50 * MIB, io_time_seconds=1.0)
    assert observed_mib_s([first, second]) == pytest.approx(50)
    halves = [phase(bytes=100 * MIB, io_time_seconds=2.0, processes=4) for _ in range(2)]
    assert observed_mib_s(halves) == pytest.approx(100)


@pytest.mark.parametrize("told", [{"io_time_seconds": 0.0}, {"bytes": 0}])
def test_a_run_without_bytes_or_time_says_nothing(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no bandwidth"):
        observed_mib_s([phase(**told)])
