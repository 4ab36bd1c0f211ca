"""The limits of the control chart are those of Roberts, its false alarms those of theory."""

from __future__ import annotations

import math
import random
from itertools import count
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast.service.monitoring.control_chart import control_chart

values = st.lists(st.floats(-3, 3), max_size=60)


def until_alarm(shift: float, numbers: random.Random) -> int:
    """Draw a series up to its first alarm, and count its values."""
    series: list[float] = []
    for length in count(1):
        series.append(numbers.gauss(shift, 1))
        if control_chart(series).since is not None:
            return length
    raise AssertionError


def test_an_empty_series_is_within_its_limits() -> None:
    found = control_chart([])
    assert (found.average, found.limit, found.since) == (0, 0, None)


def test_the_average_and_its_limits_are_roberts_s() -> None:
    """The formulas are those of Montgomery and NIST, with weight 0.2 and 3 standard deviations."""
    series = [1.0, -0.5, 2.0, 0.25]
    average = 0.0
    for length, value in enumerate(series, start=1):
        average = 0.2 * value + 0.8 * average
        found = control_chart(series[:length])
        assert found.average == pytest.approx(average)
        assert found.limit == pytest.approx(3 * math.sqrt(0.2 / 1.8 * (1 - 0.8 ** (2 * length))))
    assert control_chart([0.0] * 100).limit == pytest.approx(1.0)


@given(st.lists(st.floats(-0.6, 0.6)))
def test_small_values_are_no_alarm(series: list[float]) -> None:
    assert control_chart(series).since is None


@given(st.floats(-1e300, 1e300))
def test_one_value_alone_does_not_raise_an_alarm(odd: float) -> None:
    quiet = [0.0] * 60
    for series in ([odd], [*quiet, odd], [odd, *quiet], [*quiet, odd, *quiet]):
        assert control_chart(series).since is None


@given(values)
def test_down_is_seen_as_up_is(series: list[float]) -> None:
    up, down = control_chart(series), control_chart([-value for value in series])
    assert (up.since, up.limit) == (down.since, down.limit)
    assert up.average == -down.average


@given(values, st.sampled_from([-3.0, 2.0, 1.3]))
def test_a_lasting_shift_is_detected_with_its_time(series: list[float], shift: float) -> None:
    found = control_chart([*series, *[shift] * 60])
    assert found.since is not None
    assert math.copysign(1, found.average) == math.copysign(1, shift)
    assert control_chart([0.0] * 60 + [shift] * 60).since in range(60, 70)


def test_an_alarm_ends_when_all_is_as_expected_again() -> None:
    assert control_chart([3.0] * 10).since == 1
    assert control_chart([3.0] * 10 + [0.0] * 20).since is None
    assert control_chart([3.0] * 10 + [0.0] * 20 + [-3.0] * 5).since in range(31, 33)


@pytest.mark.slow
def test_false_alarms_are_one_in_hundreds_of_values() -> None:
    """Run lengths are almost geometric: a share 1 - exp(-200 / 590) of series of 200 has one."""
    numbers = random.Random(1959)
    alarmed = 0
    for _ in range(300):
        series = [numbers.gauss(0, 1) for _ in range(200)]
        alarmed += any(control_chart(series[:length]).since is not None for length in range(201))
    assert alarmed / 300 == pytest.approx(1 - math.exp(-200 / 590), abs=0.08)


@pytest.mark.slow
def test_at_any_time_3_of_1000_quiet_series_are_in_alarm() -> None:
    """The average of normal values is normal, so 0.27 % are beyond three standard deviations."""
    numbers = random.Random(1959)
    alarmed = sum(
        control_chart([numbers.gauss(0, 1) for _ in range(25)]).since is not None
        for _ in range(20_000)
    )
    assert alarmed / 20_000 == pytest.approx(0.0027, abs=0.0012)


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 10.0), (2.0, 3.2)])
def test_a_shift_is_seen_after_as_many_values_as_the_docstring_says(
    shift: float, expected: float
) -> None:
    numbers = random.Random(1959)
    found = fmean(until_alarm(shift, numbers) for _ in range(2000))
    assert found == pytest.approx(expected, rel=0.1)
