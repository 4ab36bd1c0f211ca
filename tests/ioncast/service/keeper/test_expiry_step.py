"""The errors of decisions outlive the decisions and outcomes, which expire."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, update

from benchdb.history.decisions import decisions
from benchdb.history.deleting_belongings import belongings_of_user, delete_some
from benchdb.history.outcomes import joined_outcomes
from benchdb.store.database import transaction
from benchdb.store.expired_errors import expired_by_month
from benchdb.store.schema import expired_errors, outcomes
from ioncast.service.keeper import expiry_step
from ioncast.service.keeper.expiry_step import ExpiryStep
from ioncast.service.settings import Settings
from ioncast_base.errors import DatabaseError
from predictor.validation.decision_errors import judge
from predictor.validation.monthly_errors import monthly_errors, months_to_json
from tests.support.history import DECISION, put_decisions, put_outcome

pytestmark = pytest.mark.both_databases

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
        return len(decisions(connection, limit=100)), len(joined_outcomes(connection))


def expire(engine: Engine, **limits: int) -> None:
    settings = Settings().model_copy(update=FOR_EVER | limits)
    step, now_s = ExpiryStep(settings, engine), time.time() + 4000 * 86_400
    # A slow machine may need several steps.
    for minute in range(20):
        step.step(now_s + 120 * minute)


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
