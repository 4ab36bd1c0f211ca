"""Tests of jumps of the wall clock."""

from __future__ import annotations

from functools import reduce

import pytest

from ioncast_base.clock import ClockCheck

_WALL_S, _BOOT_S, _HOUR_S, _DAY_S = 1.8e9, 5000.0, 3600, 86_400


def _checked(*steps: tuple[float, float]) -> ClockCheck:
    """Check the clocks; each step has seconds that the wall clock and the boot clock moved."""
    begin = ClockCheck.begin(_WALL_S, _BOOT_S)
    return reduce(lambda at, by: at.step(at.wall_s + by[0], at.boot_s + by[1]), steps, begin)


def test_at_its_first_step_a_process_does_not_know_whether_the_clock_is_right() -> None:
    check = _checked()
    assert not check.is_steady
    assert not check.has_jumped


def test_the_clock_is_steady_after_a_day_without_a_jump() -> None:
    hours = [(_HOUR_S, _HOUR_S)] * 24
    assert not _checked(*hours[1:]).is_steady
    assert _checked(*hours).is_steady
    assert not _checked(*hours).has_jumped


@pytest.mark.parametrize("jump_s", [_HOUR_S + 1, -_HOUR_S - 1, 1200 * _DAY_S, -1200 * _DAY_S])
def test_a_jump_of_more_than_an_hour_ends_a_steady_time(jump_s: float) -> None:
    check = _checked((_DAY_S, _DAY_S), (jump_s + 1, 1))
    assert check.has_jumped
    assert not check.is_steady


@pytest.mark.parametrize("jump_s", [_HOUR_S, -_HOUR_S, 1, -1])
def test_a_correction_of_at_most_an_hour_is_not_a_jump(jump_s: float) -> None:
    check = _checked((_DAY_S, _DAY_S), (jump_s + 1, 1))
    assert check.is_steady
    assert not check.has_jumped


def test_a_clock_that_was_wrong_for_a_second_is_steady_a_day_after_its_return() -> None:
    ahead_s = 1200 * _DAY_S
    jumps = [(_DAY_S, _DAY_S), (ahead_s + 1, 1), (1 - ahead_s, 1)]
    assert not _checked(*jumps, (_DAY_S - 1, _DAY_S - 1)).is_steady
    assert _checked(*jumps, (_DAY_S, _DAY_S)).is_steady


def test_a_long_time_between_two_steps_is_not_a_jump() -> None:
    assert not _checked((100 * _DAY_S, 100 * _DAY_S)).has_jumped
