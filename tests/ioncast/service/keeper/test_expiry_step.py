"""The errors of decisions outlive the decisions and outcomes, which expire."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from itertools import count, pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, update

from benchdb.history.decisions import decisions
from benchdb.history.deleting_belongings import belongings_of_user, delete_some
from benchdb.history.expired_decisions import takes_too_much
from benchdb.history.outcomes import joined_outcomes
from benchdb.store.database import transaction
from benchdb.store.expired_errors import expired_by_month
from benchdb.store.schema import expired_errors, outcomes
from ioncast.service.keeper import expiry_step
from ioncast.service.keeper.expiry_step import ExpiryStep
from ioncast.service.settings import Settings
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import DatabaseError
from predictor.validation.decision_errors import judge
from predictor.validation.monthly_errors import monthly_errors, months_to_json
from tests.support.history import DECISION, put_decisions, put_outcome

DAY_S = 86_400
pytestmark = [pytest.mark.both_databases, pytest.mark.slow]

CURVE = ((0, 40.0, 30.0, 50.0), (4, 60.0, 50.0, 70.0))
# System, I/O nodes, MiB/s and month of the report. Nothing is expected with 2 I/O nodes.
JOBS = [
    *(("here", 4, 48.0, "2026-01"), ("here", 4, 60.0, "2026-01"), ("here", 4, 75.0, "2026-02")),
    *(("here", 2, 99.0, "2026-02"), ("there", 0, 50.0, "2026-01"), ("here", 0, 80.0, "2026-02")),
]
# |60 - 48| / 48 and 0; |60 - 75| / 75 and |40 - 80| / 80; |40 - 50| / 50, exactly at p90.
MONTHS = [
    {"system": "here", "month": "2026-02", "outcomes": 2, "error": 0.35, "coverage": 0.0},
    {"system": "here", "month": "2026-01", "outcomes": 2, "error": 0.125, "coverage": 0.5},
    {"system": "there", "month": "2026-01", "outcomes": 1, "error": 0.2, "coverage": 1.0},
]
FOR_EVER: dict[str, Any] = {
    f"keep_{name}": 0 for name in ("decisions_days", "decisions_mib", "runs_days", "outcomes_days")
}


@pytest.fixture
def history(database: Engine) -> Engine:
    """Outcomes of two months, half of them reported with the ids of their decisions."""
    for number, (system, io_nodes, mib_s, month) in enumerate(JOBS):
        key, job = f"d{number}", f"job {number}"
        told = {"system": system, "io_nodes": io_nodes, "bandwidth_mib_s": mib_s}
        asked = {"system": system, "job_id": job, "curve": CURVE}
        earlier = replace(DECISION, id=f"e{number}", asked_at="2025-12-01T00:00:00+00:00", **asked)
        put_decisions(database, earlier)
        put_decisions(database, replace(earlier, id=key, asked_at="2026-01-01T00:00:00+00:00"))
        put_outcome(database, job, decision_id=key if number % 2 else None, **told)
        with transaction(database, write=True) as connection:
            reported = update(outcomes).where(outcomes.c.job_id == job)
            connection.execute(reported.values(reported_at=f"{month}-28T12:00:00.000000+00:00"))
    return database


def months(engine: Engine) -> list[dict[str, Any]]:
    with transaction(engine) as connection:
        judged = judge(joined_outcomes(connection))
        return months_to_json(monthly_errors(judged, expired_by_month(connection)))


def left(engine: Engine) -> tuple[int, int]:
    with transaction(engine) as connection:
        return len(decisions(connection, limit=10_000)), len(joined_outcomes(connection))


def expire(engine: Engine, **limits: int) -> None:
    settings = Settings().model_copy(update=FOR_EVER | limits)
    step = ExpiryStep(settings, engine)
    clock = ClockCheck.begin(time.time() + 4000 * DAY_S, boot_s=0.0)
    # The first row goes after some hours.
    for _ in range(20 * 24):
        clock = clock.step(clock.wall_s + 3600, clock.boot_s + 3600)
        step.step(clock)


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
            found.append(left(self.database)[0])
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


def test_a_system_that_was_idle_for_years_expires_in_the_end(database: Engine) -> None:
    put(database, 20)
    site = Site(database, keep_decisions_days=100)
    # The last row alone takes a hundred hours.
    numbers = site.hours(24 * 20)
    assert numbers[-1] == 0
    assert all(before - after <= 1 for before, after in pairwise(numbers))


def test_decisions_that_take_too_much_space_go_also_while_the_clock_is_wrong(
    database: Engine,
) -> None:
    put(database, 4000)
    site = Site(database, keep_decisions_days=400, keep_decisions_mib=1)
    with transaction(database, write=True) as connection:
        assert takes_too_much(connection, 1 << 20)
    site.hours(1, ahead_days=1200)
    while site.hours(1) != site.hours(1):
        pass
    with transaction(database, write=True) as connection:
        assert not takes_too_much(connection, 1 << 20)
    assert left(database)[0] > 1000


def test_the_months_are_those_of_the_outcomes(history: Engine) -> None:
    assert months(history) == MONTHS


def test_errors_stay_when_outcomes_expire(history: Engine) -> None:
    expire(history, keep_outcomes_days=1095)
    assert left(history) == (2 * len(JOBS), 0)
    assert months(history) == MONTHS


@pytest.mark.parametrize("limit", ["keep_decisions_days", "keep_decisions_mib"])
def test_errors_stay_when_decisions_expire_before_their_outcomes(
    history: Engine, limit: str
) -> None:
    # Newer than the others, so that all others must go before it.
    large = replace(DECISION, id="large", asked_at="2027-01-01T00:00:00+00:00", why="x" * 2**20)
    put_decisions(history, replace(large, job_id="job 0"))
    expire(history, **{limit: 1})
    assert left(history) == (0, len(JOBS))
    assert months(history) == MONTHS
    expire(history, keep_outcomes_days=1)
    assert months(history) == MONTHS


def test_an_interrupted_deletion_counts_nothing_twice(
    history: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete, deleted, failed = expiry_step.delete_outcomes, [], []

    def fail_once(_: Connection) -> None:
        if deleted and not failed:
            failed.append(True)
            raise DatabaseError("the database is away")

    def delete_and_note(connection: Connection, ids: Any) -> None:
        delete(connection, ids)
        deleted.append(ids)

    event.listen(history, "commit", fail_once)
    monkeypatch.setattr(expiry_step, "delete_outcomes", delete_and_note)
    with pytest.raises(DatabaseError):
        expire(history, keep_outcomes_days=1)
    assert left(history) == (2 * len(JOBS), len(JOBS))
    assert months(history) == MONTHS
    expire(history, keep_outcomes_days=1)
    assert left(history) == (2 * len(JOBS), 0)
    assert months(history) == MONTHS


def test_several_deletions_in_a_month_add_up(history: Engine) -> None:
    expire(history, keep_outcomes_days=1)
    put_outcome(history, "job 0", bandwidth_mib_s=48.0)
    with transaction(history, write=True) as connection:
        connection.execute(update(outcomes).values(reported_at="2026-01-30T00:00:00+00:00"))
    expire(history, keep_outcomes_days=1)
    [_, january, _] = months(history)
    assert (january["outcomes"], january["error"]) == (3, pytest.approx(0.5 / 3))


def test_deleting_a_user_leaves_the_sums_which_have_no_names(history: Engine) -> None:
    expire(history, keep_outcomes_days=1)
    with transaction(history, write=True) as connection:
        delete_some(connection, belongings_of_user(connection, "ada"))
    assert left(history) == (0, 0)
    assert months(history) == MONTHS
    names = {column.name for column in expired_errors.c}
    assert names == {"id", "system", "month", "number", "error_sum", "inside"}
