"""A shift that several independent applications share is proposed as a change; chance is not."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import count

import pytest

from benchdb.store.system_changes import SystemChange
from ioncast.service.monitoring.common_shift import Shift, common_shifts, shifts_to_json
from ioncast.service.store.applications import Application
from ioncast.service.store.decisions import DecisionRow
from ioncast.service.store.outcomes import JoinedOutcome
from ioncast.service.store.same_run import Outcome
from ioncast_base.times import in_utc

FIRST = datetime(2026, 10, 1, tzinfo=timezone.utc)
# Standard deviations between the mean and p10 or p90 of a normal distribution.
TENTH = 1.2815516
SIGMA = 0.1
DECISION = DecisionRow(
    id="d",
    asked_at=in_utc(FIRST),
    system="here",
    user=None,
    executable=None,
    name=None,
    job_id=None,
    nodes=8,
    tasks=16,
    available=None,
    io_nodes=4,
    source="history",
    expected_mib_s=100.0,
    confidence=0.9,
    application_id=1,
    why="it ran before",
    curve=((4, 100.0, 100 * math.exp(-TENTH * SIGMA), 100 * math.exp(TENTH * SIGMA)),),
)
_numbers = count(1)


def run(program: str, at: datetime, ratio: float, user: str | None = None) -> JoinedOutcome:
    number, time = next(_numbers), in_utc(at)
    outcome = Outcome(number, "here", f"j{number}", time, None, None, 4, 100.0 * ratio, time)
    owner = user or f"user of {program}"
    application = Application(number, "here", f"/opt/{program}", program, owner)
    return JoinedOutcome(outcome, replace(DECISION, asked_at=time), application, None, 16)


def history(
    programs: int,
    *,
    seed: int,
    days: int = 40,
    per_day: int = 2,
    shifted: Sequence[int] = (),
    on: int = 30,
    factor: float = 0.6,
    user: str | None = None,
) -> list[JoinedOutcome]:
    """Runs of some programs; those of the numbers `shifted` change on a day."""
    numbers = random.Random(seed)

    def runs() -> Iterator[JoinedOutcome]:
        for hour in range(0, 24 * days, 24 // per_day):
            for each in range(programs):
                noise = math.exp(numbers.gauss(0, SIGMA))
                is_shifted = each in shifted and hour >= 24 * on
                ratio = noise * (factor if is_shifted else 1)
                yield run(f"p{each}", FIRST + timedelta(hours=hour), ratio, user)

    return list(runs())


@pytest.mark.parametrize("factor", [0.6, 1.5])
def test_a_common_shift_is_proposed_with_its_date(factor: float) -> None:
    [found] = common_shifts(history(5, seed=1, shifted=range(5), factor=factor))
    assert (found.system, found.since) == ("here", "2026-10-31")
    assert (found.programs, found.watched) == (5, 5)
    assert found.ratio == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("seed", range(10))
def test_it_is_proposed_within_two_days(seed: int) -> None:
    [found] = common_shifts(history(6, seed=seed, shifted=range(5), days=32))
    assert (found.since, found.programs) == ("2026-10-31", 5)


def test_one_or_two_applications_are_no_change_of_the_machine() -> None:
    for shifted in ([0], [0, 1]):
        assert common_shifts(history(5, seed=2, shifted=shifted)) == []


def test_a_minority_does_not_suggest_a_change_of_the_machine() -> None:
    assert common_shifts(history(8, seed=3, shifted=range(3))) == []
    [found] = common_shifts(history(8, seed=3, shifted=range(4)))
    assert (found.programs, found.watched) == (4, 8)


def test_programs_of_a_single_user_are_not_independent() -> None:
    assert common_shifts(history(5, seed=4, shifted=range(5), user="ada")) == []


def test_several_users_of_one_program_are_one_program() -> None:
    rows = history(5, seed=5, shifted=range(5))
    one = [
        replace(row, application=replace(row.application, program="app"))
        for row in rows
        if row.application is not None
    ]
    assert common_shifts(one) == []


def test_faster_and_slower_ones_do_not_agree() -> None:
    rows = history(4, seed=6, shifted=[0, 1], factor=0.6)
    others = history(8, seed=7, shifted=[6, 7], factor=1.6)
    rows += [row for row in others if row.application and row.application.program in {"p6", "p7"}]
    assert common_shifts(rows) == []


def test_shifts_at_different_times_are_not_one_change() -> None:
    rows = []
    for each, day in enumerate((12, 21, 30)):
        found = history(3, seed=8, shifted=[each], on=day)
        rows += [r for r in found if r.application and r.application.program == f"p{each}"]
    assert common_shifts(rows) == []


def test_predictions_that_were_never_right_are_no_change() -> None:
    assert common_shifts(history(5, seed=9, shifted=range(5), on=0)) == []


def test_an_old_shift_is_not_proposed_again() -> None:
    assert common_shifts(history(5, seed=10, shifted=range(5), on=10, days=60)) == []


@pytest.mark.slow
def test_noise_is_never_proposed() -> None:
    """Two years with few programs, and two months with many; the predictions are right."""
    for programs, times in ((3, 6), (4, 6), (30, 1)):
        for seed in range(times):
            assert common_shifts(history(programs, seed=seed, days=60)) == []


def test_nothing_is_proposed_after_the_change_was_noted() -> None:
    rows = history(5, seed=1, shifted=range(5))
    since = in_utc(FIRST + timedelta(days=30))
    noted = SystemChange("here", since, "new disks", in_utc(FIRST + timedelta(days=40)))
    assert common_shifts([replace(row, change=noted) for row in rows]) == []


def test_rows_without_a_prediction_or_an_application_do_not_count() -> None:
    rows = history(5, seed=1, shifted=range(5))
    assert common_shifts([replace(row, decision=None) for row in rows]) == []
    assert common_shifts([replace(row, application=None) for row in rows]) == []
    assert common_shifts([]) == []


def test_a_proposal_has_its_command() -> None:
    shift = Shift("MareNostrum 4", "2026-10-31", 4, 5, 0.62)
    command = "ioncast system changed 'MareNostrum 4' --since 2026-10-31 --why \"…\""
    assert shifts_to_json([shift])[0]["command"] == command
    assert shift.in_words() == (
        "4 of 5 programs on MareNostrum 4 get 0.62 times the expected bandwidth since 2026-10-31"
    )
