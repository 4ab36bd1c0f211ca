"""The watch while its clock is wrong: nothing is lost, and nothing waits for days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler_plugin.collector.state import JobRun, WatchState, opened_state
from scheduler_plugin.collector.steady_time import SteadyTime
from scheduler_plugin.collector.watching import Watch
from tests.scheduler_plugin.collector import test_watching
from tests.scheduler_plugin.collector.test_watching import (
    _HOUR_S,
    _RUNS,
    _START_S,
    Site,
    _job,
    _Patient,
)

pytestmark = pytest.mark.serving

served, site = test_watching.served, test_watching.site
_DAY_S = 24 * _HOUR_S
_AHEAD_S = 1200 * _DAY_S
_LOG = "periodic-ionodes4"


@contextmanager
def _watching(site: Site) -> Iterator[tuple[Watch, WatchState]]:
    """A watch that runs on while a test changes the clock."""
    with (
        opened_state(str(site.folder / "watch.sqlite")) as state,
        _Patient(site.served.url, lambda: site.token) as service,
    ):
        yield site.watch(state, service), state


def _round(site: Site, watch: Watch, later_s: float = 10.0, ahead_s: float = 0.0) -> None:
    """Do a round at a later time, with a clock that is ahead of it."""
    site.now_s += later_s
    site.ahead_s = ahead_s
    watch.round(float("inf"))


@contextmanager
def _wrong_token(site: Site) -> Iterator[None]:
    token, site.token = site.token, "ion_wrong"
    yield
    site.token = token


def _add_unsent(state: WatchState, count: int, closed_s: float) -> None:
    """Store runs whose logs were never sent."""
    with state.transaction():
        for number in range(1, count + 1):
            run = JobRun(number, closed_s - 60, closed_s, "ann", "a", 1, 4, None)
            state.fill_in([run])
            state.add_delivery(run, "trace", [Path(f"/logs/{number}.darshan")], closed_s)
            state.close_run(run, closed_s)


def _time(site: Site) -> SteadyTime:
    return SteadyTime(lambda: site.now_s + site.ahead_s, lambda: site.now_s - _START_S)


@pytest.mark.promise("watch-wrong-clock")
@pytest.mark.parametrize("ahead_s", [_AHEAD_S, -_AHEAD_S])
def test_a_jump_counts_only_if_the_clock_stays_so_for_an_hour(site: Site, ahead_s: float) -> None:
    steady = _time(site)
    site.now_s += 1
    site.ahead_s = ahead_s
    assert steady() == site.now_s
    site.now_s += _HOUR_S - 1
    assert steady() == site.now_s
    site.now_s += 1
    assert steady() == site.now_s + ahead_s


@pytest.mark.promise("watch-wrong-clock")
def test_after_a_wrong_second_the_time_is_that_of_the_clock_again(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    steady = _time(site)
    site.ahead_s = _AHEAD_S
    steady()
    # The clock returns to the right time and not exactly to the time before.
    site.ahead_s = -7.0
    assert steady() == site.now_s - 7
    assert caplog.messages == [
        "the clock jumped by 28800.0 hours; the watch follows it if it stays so for an hour"
    ]


@pytest.mark.promise("watch-wrong-clock")
@pytest.mark.parametrize("ahead_s", [_AHEAD_S, -_AHEAD_S])
def test_a_log_that_is_put_off_while_the_clock_is_wrong_is_sent_soon(
    site: Site, ahead_s: float
) -> None:
    with _watching(site) as (watch, _):
        _round(site, watch)
        site.listed = [_job()]
        site.log(_LOG)
        with _wrong_token(site):
            _round(site, watch, ahead_s=ahead_s)
        _round(site, watch, later_s=60)
    assert len(site.outcomes()) == 1


@pytest.mark.promise("watch-wrong-clock")
def test_a_log_that_was_put_off_for_years_by_a_wrong_clock_is_sent_at_the_next_start(
    site: Site,
) -> None:
    site.ahead_s = _AHEAD_S
    with _watching(site) as (watch, _):
        _round(site, watch, ahead_s=_AHEAD_S)
        site.listed = [_job()]
        site.log(_LOG)
        with _wrong_token(site):
            _round(site, watch, ahead_s=_AHEAD_S)
    site.ahead_s = 0.0
    site.round()
    assert len(site.outcomes()) == 1


@pytest.mark.promise("watch-wrong-clock")
def test_a_clock_that_is_ahead_for_a_second_closes_no_job_before_its_log_is_there(
    site: Site,
) -> None:
    site.listed = [_job()]
    with _watching(site) as (watch, _):
        _round(site, watch)
        _round(site, watch, ahead_s=_AHEAD_S)
        site.log(_LOG)
        _round(site, watch)
    assert len(site.outcomes()) == 1


@pytest.mark.promise("watch-wrong-clock")
def test_a_job_that_ends_while_the_clock_is_wrong_is_closed_in_time(site: Site) -> None:
    site.listed = [_job(**_RUNS)]
    with _watching(site) as (watch, state):
        _round(site, watch)
        # slurmctld has forgotten the job.
        site.listed = []
        _round(site, watch, ahead_s=_AHEAD_S)
        _round(site, watch, later_s=400)
        assert not state.running()
        assert not state.ended()


@pytest.mark.promise("watch-wrong-clock")
def test_an_end_in_the_future_closes_a_job_in_time(site: Site) -> None:
    """The clock of slurmctld's machine was wrong when the job ended."""
    site.listed = [_job(ended_s=int(_START_S + _AHEAD_S))]
    site.log(_LOG)
    with _watching(site) as (watch, state):
        _round(site, watch)
        assert len(site.outcomes()) == 1
        site.listed = []
        _round(site, watch, later_s=400)
        assert not state.ended()


@pytest.mark.promise("watch-wrong-clock")
def test_nothing_is_forgotten_for_a_day_after_the_clock_was_wrong_for_a_second(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with _watching(site) as (watch, state), _wrong_token(site):
        _add_unsent(state, 3, site.now_s - 27.9 * _DAY_S)
        _round(site, watch)
        _round(site, watch, later_s=1, ahead_s=_AHEAD_S)
        for _ in range(23):
            _round(site, watch, later_s=_HOUR_S)
            assert state.waiting() == 3
        for _ in range(4):
            _round(site, watch, later_s=_HOUR_S + 1)
        assert state.waiting() == 0
    assert "1 log could not be sent for four weeks and will not be sent" in caplog.text


@pytest.mark.promise("watch-wrong-clock")
def test_a_watch_that_starts_with_a_wrong_clock_forgets_one_percent_an_hour(site: Site) -> None:
    site.ahead_s = _AHEAD_S
    for hour in range(1, 3):
        for _ in range(3):
            with _watching(site) as (watch, state), _wrong_token(site):
                if not state.waiting():
                    _add_unsent(state, 300, site.now_s - _HOUR_S)
                _round(site, watch, ahead_s=_AHEAD_S)
                assert state.waiting() == 300 - 3 * hour
        site.now_s += _HOUR_S
    site.ahead_s = 0.0
    with _watching(site) as (watch, state), _wrong_token(site):
        _round(site, watch)
        assert state.waiting() == 294


@pytest.mark.promise("watch-wrong-clock")
def test_a_watch_that_was_idle_for_long_forgets_everything_old_in_the_end(site: Site) -> None:
    with _watching(site) as (watch, state), _wrong_token(site):
        _add_unsent(state, 150, site.now_s - 60 * _DAY_S)
        for _ in range(125):
            _round(site, watch, later_s=_HOUR_S + 1)
        assert state.waiting() == 0
