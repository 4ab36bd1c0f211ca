"""Rows expire at once, slowly, or not at all, by what the clock has done."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from itertools import count, pairwise
from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.background.expiry_step import ExpiryStep
from ioncast.service.settings import Settings
from ioncast.service.store.decisions import decisions
from ioncast_base.clock import ClockCheck
from tests.support.history import DECISION, put_decisions

DAY_S = 86_400
pytestmark = [pytest.mark.both_databases, pytest.mark.slow]

FOR_EVER: dict[str, Any] = {
    f"keep_{name}": 0 for name in ("decisions_days", "runs_days", "outcomes_days")
}


def left(engine: Engine) -> int:
    with transaction(engine) as connection:
        return len(decisions(connection, limit=10_000))


class Site:
    """A keeper's expiry, which is due once an hour; a year after all decisions were made."""

    def __init__(self, database: Engine, **limits: int) -> None:
        self.database = database
        self.step = ExpiryStep(Settings().model_copy(update=FOR_EVER | limits), database)
        self.clock = ClockCheck.begin(ASKED_S + 365 * DAY_S, boot_s=1000.0)

    def hours(self, count: int, ahead_days: int = 0) -> list[int]:
        """Let the keeper work as in so many hours, and return the decisions left after each."""
        found = []
        for _ in range(count):
            wall_s = self.clock.wall_s + 3600 + ahead_days * DAY_S
            ahead_days = 0
            self.clock = self.clock.step(wall_s, self.clock.boot_s + 3600)
            self.step.step(self.clock)
            found.append(left(self.database))
        return found


ASKED_S = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()
_ids = count()


def put(database: Engine, number: int, days: float = 0) -> None:
    """Store decisions of some days after the first ones."""
    asked_at = datetime.fromtimestamp(ASKED_S + days * DAY_S, timezone.utc).isoformat()
    rows = [replace(DECISION, id=f"n{next(_ids)}", asked_at=asked_at) for _ in range(number)]
    put_decisions(database, *rows)


def test_a_clock_that_is_ahead_for_a_moment_deletes_nothing_and_is_told_once(
    database: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    put(database, 20)
    site = Site(database, keep_decisions_days=400)
    site.hours(30)
    assert site.hours(1, ahead_days=1200) == [20]
    assert site.hours(24, ahead_days=-1200) == [20] * 24
    assert caplog.text.count("the clock jumped") == 1
    assert "expire again" not in caplog.text
    site.hours(1)
    assert caplog.text.count("expire again") == 1


@pytest.mark.promise("service-wrong-clock")
@pytest.mark.parametrize("hours", [0, 30])
def test_a_clock_that_stays_wrong_deletes_nothing_for_a_day_and_then_little_in_an_hour(
    database: Engine, hours: int
) -> None:
    put(database, 200)
    site = Site(database, keep_decisions_days=400)
    site.hours(1 + hours)
    assert site.hours(24, ahead_days=1200) == [200] * 24
    site.hours(1)
    assert site.hours(3) == [198, 197, 196]


@pytest.mark.promise("service-wrong-clock")
def test_at_a_start_at_most_one_row_in_a_hundred_goes_in_an_hour(
    database: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    put(database, 8)
    put(database, 192, days=300)
    site = Site(database, keep_decisions_days=300)
    assert site.hours(3) == [200, 198, 197]
    assert caplog.text.count("decisions: 8 of 200 have expired; the clock may be wrong") == 1
    # After a day without a jump the clock is right, and 1 of 193 is little.
    site.hours(24)
    put(database, 1)
    assert site.hours(1) == [192]


def test_a_small_part_of_a_table_expires_at_once_after_a_steady_day(database: Engine) -> None:
    put(database, 200, days=300)
    site = Site(database, keep_decisions_days=300)
    site.hours(25)
    put(database, 20)
    assert site.hours(1) == [200]


@pytest.mark.promise("service-wrong-clock")
def test_more_than_a_tenth_of_a_table_goes_slowly_whatever_the_clock_did(
    database: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    put(database, 200, days=300)
    site = Site(database, keep_decisions_days=300)
    site.hours(25)
    put(database, 100)
    assert site.hours(3) == [300, 297, 295]
    assert caplog.text.count("100 of 300 have expired; these are many") == 1


def test_a_restarted_keeper_deletes_nothing_in_its_first_minutes(database: Engine) -> None:
    put(database, 100)
    for _ in range(20):
        assert Site(database, keep_decisions_days=100).hours(1) == [100]


def test_a_pause_of_weeks_saves_up_no_deletions(database: Engine) -> None:
    put(database, 200)
    site = Site(database, keep_decisions_days=100)
    site.hours(1)
    # A laptop sleeps: both clocks go on.
    month_s = 30 * DAY_S
    site.clock = site.clock.step(site.clock.wall_s + month_s, site.clock.boot_s + month_s)
    assert site.hours(2) == [198, 197]


@pytest.mark.promise("service-wrong-clock")
def test_a_system_that_was_idle_for_years_expires_in_the_end(database: Engine) -> None:
    put(database, 20)
    site = Site(database, keep_decisions_days=100)
    numbers = site.hours(24 * 20)
    assert numbers[-1] == 0
    assert all(before - after <= 1 for before, after in pairwise(numbers))
