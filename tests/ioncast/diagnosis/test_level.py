"""The weather: a bad week is seen in other jobs, and widens what is expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ioncast.diagnosis.diagnosing import History
from ioncast.diagnosis.level import Weather
from tests.ioncast.diagnosis.test_normal import rows

DAY_US = 86_400_000_000


def weather(
    bandwidths: Sequence[tuple[float, float]], *, own_day: float = 50.0, own_mib_s: float = 100.0
) -> Weather | None:
    """The weather of a run among jobs, each with its day and its bandwidth in MiB/s."""
    runs = [
        {"bandwidth_mib_s": mib_s, "start_us": round(day * DAY_US)}
        for day, mib_s in [(own_day, own_mib_s), *bandwidths]
    ]
    return History(rows(runs)).diagnose("0" * 64).facts.weather


def usual_days(*, besides: tuple[float, float] = (0, 0)) -> list[tuple[float, float]]:
    """Two jobs a day with about 100 MiB/s in 100 days, but not in the days between two."""
    random = np.random.default_rng(1)
    days = [day for day in range(100) if not besides[0] <= day < besides[1]]
    return [(day, 100 * float(np.exp(random.normal(0, 0.1)))) for day in days for _ in range(2)]


def test_a_usual_week_has_the_level_1() -> None:
    found = weather(usual_days())
    assert found is not None
    assert found.level == pytest.approx(1, abs=0.1)
    assert found.widening[0] < 1.6
    # The days from 43 to 57, and those from 49 to 51, with two jobs each.
    assert (found.jobs_of_week, found.slow_jobs_of_week) == (30, 0)
    assert (found.jobs_of_day, found.slow_jobs_of_day) == (6, 0)


def test_a_bad_week_is_seen_in_the_other_jobs() -> None:
    bad = [(day, 30.0) for day in range(45, 55) for _ in range(2)]
    found = weather([*usual_days(besides=(45, 55)), *bad], own_mib_s=30.0)
    assert found is not None
    assert found.level < 0.6
    assert found.slow_jobs_of_day == found.jobs_of_day == 6
    assert (found.slow_jobs_of_week, found.jobs_of_week) == (20, 30)


def test_single_slow_jobs_widen_the_interval_and_leave_the_level() -> None:
    calm, rough = usual_days(), usual_days()
    rough[80:120:5] = [(day, 20.0) for day, _ in rough[80:120:5]]
    one, other = weather(calm), weather(rough)
    assert one is not None and other is not None
    assert other.level == pytest.approx(1, abs=0.15)
    low, _ = one.interval(np.log(100), 0.1)
    assert other.interval(np.log(100), 0.1)[0] < low / 1.5


def test_the_own_job_says_nothing_about_its_weather() -> None:
    slow, usual = (weather(usual_days(), own_mib_s=each) for each in (1.0, 100.0))
    assert slow is not None and usual is not None
    # The usual bandwidths of the others have it among many.
    assert slow.level == pytest.approx(usual.level, rel=1e-3)
    assert slow.slow_jobs_of_week == 0


def test_too_few_jobs_near_are_no_weather() -> None:
    assert weather(usual_days(besides=(42, 59))) is None
    assert weather(usual_days(), own_day=1000.0) is None
