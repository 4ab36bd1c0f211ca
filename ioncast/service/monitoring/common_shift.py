"""Detects that several independent applications got faster or slower than predicted together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from ioncast.service.monitoring.control_chart import alarms
from ioncast.service.monitoring.decision_errors import prediction_of, standardised
from ioncast.service.store.outcomes import JoinedOutcome
from ioncast_base.times import instant

# Alarms of one change are raised within this time: not every application runs each day.
_WINDOW = timedelta(days=7)
# An older shift is known, or has become normal.
_RECENT = timedelta(days=30)
# Among a hundred applications chance raises several alarms a week, so most must agree.
_FEWEST_PROGRAMS = 3
_LEAST_SHARE = 0.5
# Programs of one user may share a library, or a folder with another layout.
_FEWEST_USERS = 2
# An application whose predictions were never right tells nothing about a change.
_FEWEST_BEFORE = 5
# A mean that is so many of its standard deviations away from the prediction is no chance.
_DEVIATIONS = 3.0
_FEWEST_AFTER = 3
_DAY = "%Y-%m-%d"


@dataclass(frozen=True)
class Shift:
    """A lasting difference to the predictions that began in several applications together.

    `since` is the date in UTC of the first run that differs.
    """

    system: str
    since: str
    programs: int
    watched: int
    ratio: float

    @property
    def command(self) -> str:
        """The command that notes the change."""
        name = f"'{self.system}'" if " " in self.system else self.system
        return f'ioncast system changed {name} --since {self.since} --why "…"'

    def in_words(self) -> str:
        """Describe the shift in a sentence."""
        return (
            f"{self.programs} of {self.watched} programs on {self.system} get"
            f" {self.ratio:.2f} times the expected bandwidth since {self.since}"
        )


@dataclass(frozen=True)
class _Run:
    at: datetime
    # In standard deviations of the prediction, and as a logarithm.
    value: float
    residual: float


@dataclass(frozen=True)
class _Application:
    program: str
    user: str
    runs: tuple[_Run, ...]


@dataclass(frozen=True)
class _Change:
    """A shift of one application, and the run that raised the alarm."""

    of: _Application
    proof: int
    is_up: bool

    @property
    def at(self) -> datetime:
        return self.of.runs[self.proof].at


def common_shifts(rows: Iterable[JoinedOutcome]) -> list[Shift]:
    """Find shifts that began in several independent applications at about the same time.

    A system has at most one: at least three programs of at least two users, and at least half of
    the programs that ran before and after, raised an alarm (see `control_chart`) in the same
    direction, all within a week of the last 30 days.
    """
    by_system: dict[str, list[JoinedOutcome]] = defaultdict(list)
    for row in rows:
        by_system[row.outcome.system].append(row)
    found = (_shift(name, _applications(own)) for name, own in sorted(by_system.items()))
    return [shift for shift in found if shift is not None]


def shifts_to_json(found: Iterable[Shift]) -> list[dict[str, Any]]:
    """Turn shifts into plain values for JSON, with the command that notes the change."""
    return [asdict(each) | {"command": each.command} for each in found]


def _applications(rows: Iterable[JoinedOutcome]) -> list[_Application]:
    runs: dict[tuple[str, str], list[_Run]] = defaultdict(list)
    for row in rows:
        expected, at = prediction_of(row), instant(row.ran_at)
        if expected is None or row.application is None or at is None:
            continue
        observed = row.outcome.bandwidth_mib_s
        run = _Run(at, standardised(observed, expected), math.log(observed / expected.mean))
        runs[row.application.program, row.application.user].append(run)
    return [
        _Application(*name, tuple(sorted(own, key=lambda run: run.at)))
        for name, own in runs.items()
    ]


def _shift(system: str, applications: Sequence[_Application]) -> Shift | None:
    newest = max((application.runs[-1].at for application in applications), default=None)
    if newest is None:
        return None
    changed = [
        change
        for application in applications
        for change in _changes(application)
        if change.at >= newest - _RECENT
    ]
    windows = [
        [other for other in changed if other.is_up == one.is_up and _is_with(other, one)]
        for one in changed
    ]
    together = max(windows, key=lambda window: len(_programs(window)), default=[])
    if not together:
        return None
    since = _beginning(together)
    agreeing = [each for each in together if _differs(each, since)]
    users = {each.of.user for each in agreeing}
    if len(_programs(agreeing)) < _FEWEST_PROGRAMS or len(users) < _FEWEST_USERS:
        return None
    watched = _programs(agreeing) | {
        application.program for application in applications if _is_watched(application, since)
    }
    if len(_programs(agreeing)) < _LEAST_SHARE * len(watched):
        return None
    residuals = [run.residual for each in agreeing for run in each.of.runs if run.at >= since]
    return Shift(
        system=system,
        since=since.strftime(_DAY),
        programs=len(_programs(agreeing)),
        watched=len(watched),
        ratio=math.exp(fmean(residuals)),
    )


def _changes(of: _Application) -> list[_Change]:
    return [
        _Change(of, alarm.raised, alarm.is_up)
        for alarm in alarms([run.value for run in of.runs])
        if alarm.begins >= _FEWEST_BEFORE
    ]


def _is_with(other: _Change, one: _Change) -> bool:
    return one.at <= other.at <= one.at + _WINDOW


def _differs(change: _Change, since: datetime) -> bool:
    """Whether the mean of all runs since then is too far off for chance, not only the newest."""
    values = [run.value for run in change.of.runs if run.at >= since]
    sign = 1 if change.is_up else -1
    return bool(values) and sign * sum(values) >= _DEVIATIONS * math.sqrt(len(values))


def _programs(changes: Iterable[_Change]) -> set[str]:
    return {change.of.program for change in changes}


def _is_watched(of: _Application, since: datetime) -> bool:
    before = sum(run.at < since for run in of.runs)
    return before >= _FEWEST_BEFORE and len(of.runs) - before >= _FEWEST_AFTER


def _beginning(agreeing: Sequence[_Change]) -> datetime:
    """Estimate when the common shift began: the likeliest time for all applications together.

    Before it the values have the mean 0, and after it another one.
    """
    near = sorted(
        (run for each in agreeing for run in each.of.runs[: each.proof + 1]),
        key=lambda run: run.at,
    )
    total, best, since = 0.0, 0.0, near[-1].at
    for count, run in enumerate(reversed(near), 1):
        total += run.value if agreeing[0].is_up else -run.value
        if total > 0 and total**2 / count > best:
            best, since = total**2 / count, run.at
    return since
