from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.composition import Bandwidth, Point, compose

MIB = 1 << 20


def point(*work: tuple[float, Sequence[float]]) -> Point:
    """Compose parts of (MiB, repetitions) at one number of I/O nodes."""
    [found] = compose([(round(mib * MIB), {0: values}) for mib, values in work], [0])
    return found


@pytest.mark.parametrize(
    ("work", "bandwidth", "time"),
    [
        ([(100, [50])], 50, 2),
        # Half the bytes at 50 and half at 100 MiB/s: 2 s and 1 s for 200 MiB.
        ([(100, [50]), (100, [100])], 200 / 3, 3),
        # Equal bytes: the harmonic mean.
        ([(64, [10]), (64, [20]), (64, [40])], statistics.harmonic_mean([10, 20, 40]), 11.2),
        # A slow part of few bytes takes most of the time.
        ([(1, [1]), (99, [99])], 50, 2),
        # No bytes take no time.
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
    variance = sum(
        mib**2 * statistics.pvariance([1 / value for value in values]) for mib, values in work
    )
    # Six standard errors of two thousand draws.
    assert abs(found.time_s - expected_time(work)) <= 6 * math.sqrt(variance / 2000) + 1e-9


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
    found = compose([(100 * MIB, cells)], [8, 0])
    assert [(p.io_nodes, p.time_s) for p in found] == [
        (8, pytest.approx(1)),
        (0, pytest.approx(2)),
    ]


def test_the_same_work_gives_the_same_numbers() -> None:
    work = [(100 * MIB, {0: [10.0, 20.0, 35.0]}), (50 * MIB, {0: [5.0, 7.0]})]
    assert compose(work, [0]) == compose(work, [0])
