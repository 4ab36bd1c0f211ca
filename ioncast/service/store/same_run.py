"""Outcomes as values, and which of them is about a run: ids of jobs come again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# A report without the scheduler's start is compared with outcomes of this time. The watch tries as
# long to send a log, and schedulers seldom use an id again so soon.
LONGEST = timedelta(weeks=4)
# Length of the date and time without fractions at the start of a stored time.
SECOND = len("2026-11-21T04:15:02")


@dataclass(frozen=True)
class Outcome:
    """The bandwidth that a job got in one of its runs.

    Attributes
    ----------
    system, job_id : str
        The job. Its id may come again: after a requeue, or when the scheduler counts from 1 again.
    started : str or None
        When the run started, ISO 8601 in UTC, in whole seconds: as the scheduler tells it, else as
        the log tells it; None if neither is known. A system has one outcome for a job and a start.
    decision_id : str or None
        Id of the job's decision as it was reported; the decision may be missing in the database.
    io_node_names : str or None
        The names of its I/O nodes with commas between; None if they are unknown.
    submitted, ended : str or None
        When the job was submitted, and when this run ended, as the scheduler tells it.
    """

    id: int
    system: str
    job_id: str
    started: str | None
    decision_id: str | None
    run_id: int | None
    io_nodes: int
    bandwidth_mib_s: float
    reported_at: str
    log_started: str | None = None
    io_node_names: str | None = None
    submitted: str | None = None
    ended: str | None = None

    @property
    def has_scheduled_start(self) -> bool:
        """Whether the scheduler told the start, not only the log."""
        return self.started is not None and self.started != whole_second(self.log_started)


@dataclass(frozen=True)
class Report:
    """The facts in a report that tell which run it is about.

    The starts are those of the scheduler and of the log, as `whole_second` writes them. The log's
    start is later: the program starts after its job.
    """

    started: str | None
    log_started: str | None
    run_id: int | None
    reported_at: str


def whole_second(time: str | None) -> str | None:
    """Cut a stored time to its second: schedulers count seconds, as Darshan did before 3.4.1.

    Examples
    --------
    >>> whole_second("2026-11-21T04:15:02.750000+00:00")
    '2026-11-21T04:15:02.000000+00:00'
    """
    return time and f"{time[:SECOND]}.000000+00:00"


def outcomes_of_run(known: Sequence[Outcome], report: Report) -> list[Outcome]:
    """Find the stored outcome of the run that a report is about; none for a new run.

    They are two if the report has the log of one and the start of another.
    """
    start = report.started or report.log_started
    same = [each for each in known if _is_same(each, start, report.run_id)]
    if same:
        return same
    if start is None:
        return _newest(known, report.reported_at)
    if report.started:
        return _first_after(start, known, [each for each in known if not each.has_scheduled_start])
    unknown = [each for each in known if each.started is None]
    return _around(start, known) or _first_after(start, known, unknown)


def _is_same(outcome: Outcome, start: str | None, run_id: int | None) -> bool:
    has_the_log = run_id is not None and outcome.run_id == run_id
    return has_the_log or (start is not None and outcome.started == start)


def _newest(known: Sequence[Outcome], reported_at: str) -> list[Outcome]:
    recent = [each for each in known if _apart(each.reported_at, reported_at) <= LONGEST]
    return sorted(recent, key=lambda each: (each.reported_at, each.id))[-1:]


def _around(start: str, known: Sequence[Outcome]) -> list[Outcome]:
    """The outcome of the job in which a log started: before the report, after the job's start."""
    found = [
        each
        for each in known
        if each.has_scheduled_start
        and each.started
        and each.started <= start <= each.reported_at
        and _apart(each.started, start) <= LONGEST
    ]
    return sorted(found, key=lambda each: each.started or "")[-1:]


def _first_after(
    start: str, known: Sequence[Outcome], candidates: Sequence[Outcome]
) -> list[Outcome]:
    """The first of some outcomes after a start, unless the job was started again before it."""
    restarts = [each.started for each in known if each.has_scheduled_start and each.started]
    again = min((restart for restart in restarts if restart > start), default=None)
    found = [
        (moment, candidate)
        for candidate in candidates
        if start <= (moment := candidate.started or candidate.reported_at)
        and (again is None or moment < again)
        and _apart(start, moment) <= LONGEST
    ]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])[:1]]


def _apart(before: str, after: str) -> timedelta:
    return datetime.fromisoformat(after) - datetime.fromisoformat(before)
