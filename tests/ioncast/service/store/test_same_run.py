"""A report is about the run of a job that it belongs to, although ids of jobs come again."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ioncast.service.store.same_run import Outcome, Report, outcomes_of_run
from ioncast_base.times import in_utc

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
HOUR = 60
DAY = 24 * HOUR
WEEK = 7 * DAY


def at(minutes: float | None) -> str | None:
    return None if minutes is None else in_utc(NOON + timedelta(minutes=minutes))


def reported(minutes: float) -> str:
    return in_utc(NOON + timedelta(minutes=minutes))


def scheduled(number: int, started: float, reported_at: float, log: int | None = None) -> Outcome:
    """An outcome with the scheduler's start, and a log that started a minute later."""
    return Outcome(
        number, "here", "1", at(started), None, log, 4, 70.0, reported(reported_at), at(started + 1)
    )


def logged(number: int, started: float, reported_at: float) -> Outcome:
    """An outcome with only a log, which has the number of the outcome."""
    start = at(started)
    return Outcome(number, "here", "1", start, None, number, 4, 70.0, reported(reported_at), start)


def bare(number: int, reported_at: float) -> Outcome:
    """An outcome without a start and a log."""
    return Outcome(number, "here", "1", None, None, None, 4, 70.0, reported(reported_at))


def found(
    known: list[Outcome],
    *,
    started: float | None = None,
    log_started: float | None = None,
    log: int | None = None,
    now: float = WEEK,
) -> list[int]:
    report = Report(at(started), at(log_started), log, reported(now))
    return [each.id for each in outcomes_of_run(known, report)]


def test_the_first_report_is_about_a_new_run() -> None:
    assert found([]) == found([], started=0) == found([], log_started=0, log=7) == []


def test_a_start_of_the_scheduler_is_compared_exactly() -> None:
    runs = [scheduled(1, 0, 10), scheduled(2, 12, 20)]
    assert found(runs, started=0) == [1]
    assert found(runs, started=12) == [2]
    # A run that was requeued at once, reported before or after the others.
    for started in (-5, 11, 13, 30):
        assert found(runs, started=started) == []


def test_the_same_log_is_the_same_run_whatever_start_is_told() -> None:
    runs = [scheduled(1, 0, 10, log=7), logged(2, 13, 20)]
    assert found(runs, log_started=1, log=7) == [1]
    assert found(runs, started=12, log_started=13, log=2) == [2]
    assert found(runs, started=0, log_started=13, log=2) == [1, 2]


def test_logs_that_started_at_other_times_are_other_runs() -> None:
    runs = [logged(1, 0, 10), logged(2, 12, 20)]
    assert found(runs, log_started=12, log=9) == [2]
    for started in (-5, 5, 30):
        assert found(runs, log_started=started, log=9) == []


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        # Before Darshan 3.4.1 its start is a whole second, which may be that of the job.
        (0, [1]),
        (5, [1]),
        (10, [1]),
        # The first run was reported before.
        (11, []),
        (12, [2]),
        (30, []),
        (-1, []),
    ],
)
def test_a_log_is_of_the_job_that_started_before_it_and_was_reported_after_it(
    started: float, expected: list[int]
) -> None:
    runs = [scheduled(1, 0, 10, log=7), scheduled(2, 12, 20, log=8)]
    assert found(runs, log_started=started, log=9) == expected


def test_a_job_is_that_of_the_first_log_after_its_start() -> None:
    assert found([logged(1, 5, 10), logged(2, 15, 20)], started=0) == [1]
    assert found([logged(1, 5, 10), logged(2, 15, 20)], started=12) == [2]
    assert found([logged(1, 5, 10)], started=12) == []
    # The log is that of the second run, and the first one is reported late.
    assert found([scheduled(1, 12, 20), logged(2, 30, 40)], started=0) == []


@pytest.mark.parametrize("start", ["started", "log_started"])
def test_an_outcome_without_a_start_is_that_of_the_run_before_its_report(start: str) -> None:
    assert found([bare(1, 10)], **{start: 0}) == [1]
    assert found([bare(1, 10)], **{start: 12}) == []
    assert found([bare(1, 10), bare(2, 6 * WEEK)], **{start: 5 * WEEK}) == [2]


def test_a_report_without_a_start_is_about_the_newest_outcome_of_four_weeks() -> None:
    runs = [scheduled(1, 0, 10), scheduled(2, 12, 20), bare(3, -6 * WEEK)]
    assert found(runs, now=30) == found(runs, now=4 * WEEK) == [2]
    assert found(runs, now=4 * WEEK + 30) == []


def test_an_id_that_comes_again_after_weeks_is_another_jobs() -> None:
    later = 5 * WEEK
    for old in (bare(1, later), logged(1, later, later + 10)):
        assert found([old], started=0) == []
    assert found([bare(1, later)], log_started=0) == []
    assert found([scheduled(1, 0, later + 10)], log_started=later, log=9) == []


def test_times_at_the_ends_of_the_calendar_are_compared() -> None:
    report = Report(
        "9999-12-31T23:59:59.000000+00:00", None, None, "2026-11-21T12:00:00.000000+00:00"
    )
    assert outcomes_of_run([bare(1, 0), logged(2, 1, 2)], report) == []
