"""Decisions expire by age and by space, and the hours keep their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, select, text

from benchdb.history.decision_sizes import SIZE_COUNTER
from benchdb.history.decisions import DecisionRow, decisions, decisions_per_hour
from benchdb.history.expired_decisions import (
    BEGINNING,
    Place,
    count_too_old,
    delete_least_useful,
    delete_too_old,
    takes_too_much,
)
from benchdb.store.database import transaction
from benchdb.store.schema import decisions as decisions_table
from benchdb.store.schema import expired_decisions, outcomes
from benchdb.store.stored_counters import counter
from ioncast_base.times import in_utc
from tests.support.history import DECISION, put_decisions, put_outcome

pytestmark = pytest.mark.both_databases

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
BEFORE_ALL = datetime(2000, 1, 1, tzinfo=timezone.utc)


def row(key: str, minute: float = 0, **changes: Any) -> DecisionRow:
    asked_at = in_utc(NOON + timedelta(minutes=minute))
    return replace(DECISION, id=key, asked_at=asked_at, **({"job_id": None} | changes))


def nothing(connection: Connection, ids: Sequence[str]) -> None:
    """The keeper sums up the errors of these decisions; see the tests of its process."""


def kept(engine: Engine) -> set[str]:
    with transaction(engine) as connection:
        return {found.id for found in decisions(connection, limit=10_000)}


def per_hour(engine: Engine, system: str | None = None) -> list[tuple[str, str, int]]:
    with transaction(engine) as connection:
        return decisions_per_hour(connection, BEFORE_ALL, system)


def size(engine: Engine) -> int:
    with transaction(engine) as connection:
        return counter(connection, SIZE_COUNTER)


def delete_before(engine: Engine, moment: datetime) -> int:
    total = 0
    while True:
        with transaction(engine, write=True) as connection:
            number = delete_too_old(connection, moment, nothing)
        if not number:
            return total
        total += number


def shrink(engine: Engine, most_bytes: int) -> list[set[str]]:
    """Delete until the rest fits, and return what each transaction deleted."""
    _, gone = shrink_on(engine, most_bytes, BEGINNING)
    return gone


def shrink_on(engine: Engine, most_bytes: int, place: Place) -> tuple[Place, list[set[str]]]:
    """The same from the place that the last search ended at; return the new place, too."""
    gone: list[set[str]] = []
    while True:
        before = kept(engine)
        with transaction(engine, write=True) as connection:
            if not takes_too_much(connection, most_bytes):
                return place, [each for each in gone if each]
            place = delete_least_useful(connection, most_bytes, place, nothing)
        gone.append(before - kept(engine))


def test_decisions_before_a_time_are_deleted(database: Engine) -> None:
    put_decisions(database, row("old", -0.001), row("new"))
    with transaction(database) as connection:
        assert count_too_old(connection, NOON) == 1
        assert count_too_old(connection, NOON - timedelta(minutes=1)) == 0
    assert delete_before(database, NOON) == 1
    assert kept(database) == {"new"}


def test_many_decisions_are_deleted_in_many_transactions(database: Engine) -> None:
    put_decisions(database, *(row(f"d{i}", -i) for i in range(1, 1203)))
    with transaction(database, write=True) as connection:
        assert delete_too_old(connection, NOON, nothing) == 500
    # The oldest go first, so that the newer ones are still known.
    assert kept(database) == {f"d{i}" for i in range(1, 703)}
    with transaction(database, write=True) as connection:
        assert delete_too_old(connection, NOON, nothing, 2) == 2
    assert delete_before(database, NOON) == 700


def test_decisions_that_no_job_follows_are_deleted_first(database: Engine) -> None:
    put_outcome(database, "4711")
    put_outcome(database, "4712", decision_id="reported")
    rows = [
        row("reported", -9),
        row("asked for a job", -8, job_id="4711"),
        row("of a user", -7),
        row("of a job", -6, user=None, job_id="1"),
        row("anonymous 1", -5, user=None),
        row("of a user, new", -4),
        row("anonymous 2", -3, user=None),
        # Ids of jobs come again, so another system has this one too.
        row("of another system", -2, job_id="4711", system="there"),
    ]
    put_decisions(database, *rows)
    order: list[str] = []
    for _ in rows:
        [gone] = shrink(database, size(database) - 1)
        order += gone
    assert order == [
        *("anonymous 1", "anonymous 2", "of a user", "of a job", "of a user, new"),
        *("of another system", "reported", "asked for a job"),
    ]
    assert size(database) == 0


def test_no_more_is_deleted_than_must_be(database: Engine) -> None:
    put_decisions(database, *(row(f"d{i:04}", i, user=None) for i in range(1100)))
    each = size(database) // 1100
    shrink(database, 100 * each)
    assert kept(database) == {f"d{i:04}" for i in range(1000, 1100)}
    assert shrink(database, 100 * each) == []


def test_a_search_goes_on_behind_the_decisions_that_stay(database: Engine) -> None:
    followed = [row(f"j{i:04}", i, job_id=f"{i}") for i in range(600)]
    for each in followed[::50]:
        put_outcome(database, str(each.job_id))
    put_decisions(database, *followed, *(row(f"a{i:04}", i, user=None) for i in range(600)))
    shrink(database, size(database) * 600 // 1200)
    assert {key[0] for key in kept(database)} == {"j"}
    place = BEGINNING
    with transaction(database, write=True) as connection:
        assert delete_least_useful(connection, 1 << 40, place, nothing) == place


def test_a_later_flood_is_deleted_before_the_decisions_of_users(database: Engine) -> None:
    put_decisions(database, *(row(f"u{i:04}", i) for i in range(1000)))
    most_bytes = size(database) * 900 // 1000
    place, _ = shrink_on(database, most_bytes, BEGINNING)
    users = kept(database)
    for begin in (2000, 3000):
        put_decisions(database, *(row(f"a{begin + i}", begin + i, user=None) for i in range(400)))
        place, _ = shrink_on(database, most_bytes, place)
        assert users <= kept(database)


def test_a_flood_during_the_search_is_deleted_before_the_decisions_of_users(
    database: Engine,
) -> None:
    put_decisions(database, *(row(f"u{i:04}", i) for i in range(1000)))
    most_bytes = size(database) * 300 // 1000
    place = BEGINNING
    for _ in range(3):
        # The first two look at all decisions for those of nobody.
        with transaction(database, write=True) as connection:
            place = delete_least_useful(connection, most_bytes, place, nothing)
    put_decisions(database, *(row(f"a{i}", 2000 + i, user=None) for i in range(400)))
    shrink_on(database, most_bytes, place)
    assert len({key for key in kept(database) if key[0] == "u"}) >= 295


def test_a_decision_whose_outcome_went_is_deleted_in_a_later_search(database: Engine) -> None:
    jobs = [row(f"j{i}", i, job_id=f"{i}") for i in range(3)]
    for each in jobs:
        put_outcome(database, str(each.job_id))
    put_decisions(database, *jobs, row("u", 4))
    place, gone = shrink_on(database, size(database) - 1, BEGINNING)
    assert gone == [{"u"}]
    with transaction(database, write=True) as connection:
        connection.execute(delete(outcomes))
    place, gone = shrink_on(database, size(database) - 1, place)
    assert gone == [{"j0"}]
    place, gone = shrink_on(database, 0, place)
    assert kept(database) == set()


def test_a_counter_without_decisions_is_set_right(database: Engine) -> None:
    put_decisions(database, row("d"))
    with transaction(database, write=True) as connection:
        connection.execute(delete(decisions_table))
    assert shrink(database, 10) == []
    assert size(database) == 0


def test_a_decision_that_is_stored_twice_takes_its_space_once(database: Engine) -> None:
    put_decisions(database, row("d"), row("d"))
    once = size(database)
    put_decisions(database, row("d"))
    assert size(database) == once > 0


def test_systems_that_nobody_knows_are_counted_together(database: Engine) -> None:
    put_outcome(database)
    put_decisions(database, row("known"), *(row(f"d{i}", system=f"s{i}") for i in range(20)))
    before = per_hour(database)
    delete_before(database, NOON + timedelta(minutes=1))
    assert per_hour(database) == before
    assert [number for *_, number in per_hour(database, "here")] == [1]
    with transaction(database) as connection:
        found = connection.execute(select(expired_decisions.c.system, expired_decisions.c.number))
        assert sorted(map(tuple, found), key=str) == [("here", 1), (None, 20)]


TIMES = st.integers(-200, 200)
ROWS = st.lists(
    st.tuples(
        TIMES,
        st.sampled_from(["here", "there", "größe"]),
        st.sampled_from(["history", "model", "default"]),
        st.sampled_from([None, "ada"]),
    ),
    max_size=30,
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), ROWS),
        st.tuples(st.just("expire"), TIMES),
        st.tuples(st.just("shrink"), st.floats(0, 1)),
    ),
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(acts=ACTS)
def test_the_counts_of_hours_are_those_of_all_decisions_ever(
    database: Engine, acts: Sequence[tuple[str, Any]]
) -> None:
    """Storing, expiring and shrinking in any order: another program counts the same rows."""
    with transaction(database, write=True) as connection:
        for table in ("decisions", "expired_decisions"):
            connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608
        connection.execute(text("UPDATE counters SET value = 0"))
    for system in ("here", "there"):
        put_outcome(database, system=system)
    asked: list[DecisionRow] = []
    for what, told in acts:
        if what == "store":
            new = [
                row(f"d{len(asked) + place}", minute, system=system, source=source, user=user)
                for place, (minute, system, source, user) in enumerate(told)
            ]
            put_decisions(database, *new)
            asked += new
        elif what == "expire":
            delete_before(database, NOON + timedelta(minutes=told))
        else:
            shrink(database, round(size(database) * told))
    for system in (None, "here", "there"):
        expected: dict[tuple[str, str], int] = {}
        for each in asked:
            if system in {None, each.system}:
                key = f"{each.asked_at[:13]}:00:00+00:00", each.source
                expected[key] = expected.get(key, 0) + 1
        assert per_hour(database, system) == [(*key, expected[key]) for key in sorted(expected)]


@pytest.mark.slow
def test_the_space_is_estimated_well(database: Engine) -> None:
    """The databases measure the same rows with their indexes."""
    why = "nothing is known of the job: no program of this name or user is in the history"
    rows = [row(f"{i:032x}", i / 100, user=None, job_id=None, why=why) for i in range(20_000)]
    before = measured_bytes(database)
    put_decisions(database, *rows)
    assert 0.6 < size(database) / (measured_bytes(database) - before) < 1.6


def measured_bytes(engine: Engine) -> int:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            return int(connection.scalar(text("SELECT pg_total_relation_size('decisions')")) or 0)
        pages = connection.scalar(text("PRAGMA page_count")) or 0
        return int(pages * (connection.scalar(text("PRAGMA page_size")) or 0))
