"""A keeper whose wall clock is years ahead deletes nothing that is not old."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import pytest
from sqlalchemy import func, select

from benchdb.store.database import opened_database, transaction
from ioncast.service.decide.prepared import Reader, prepared_file
from ioncast.service.settings import Settings
from ioncast.service.store.kept_results import keep_result
from ioncast.service.store.tables import decisions, kept_results, outcomes, runs
from tests.support.faked_clock import DAY_S, FakedClock
from tests.support.serving import PATIENCE_S, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.compiler, pytest.mark.both_databases]

# Older than anything may become: runs stay for 1,095 days.
AHEAD_DAYS = 1200


@pytest.fixture
def settings(filled_location: str, tmp_path: Path) -> Settings:
    """Settings for the demonstration's data and a kept result."""
    with opened_database(filled_location) as database, transaction(database, write=True) as c:
        now = datetime.now(timezone.utc)
        assert keep_result(c, "secret", "{}", now=now, days=30, room_bytes=10)
    return Settings(database=filled_location, state=str(tmp_path / "state"))


@pytest.fixture
def clock(tmp_path: Path) -> FakedClock:
    return FakedClock(tmp_path)


@contextmanager
def kept(settings: Settings, clock: FakedClock) -> Iterator[subprocess.Popen[bytes]]:
    """A keeper in a process of its own with another clock."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ioncast.service.background.process", str(os.getpid())],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **clock.environment},
    )
    assert process.stdin is not None
    process.stdin.write(settings.model_dump_json().encode())
    process.stdin.close()
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def stored(settings: Settings) -> list[int]:
    """The numbers of rows that expire by age."""
    with opened_database(settings.database) as database, transaction(database) as connection:
        counts = (select(func.count(table.c.id)) for table in TABLES)
        return [connection.scalars(count).one() for count in counts]


TABLES = (runs, outcomes, decisions, kept_results)


def wait_for_rounds(settings: Settings, ahead_days: int) -> None:
    """Wait until the keeper has done all its steps three times with this clock."""
    reader = Reader(prepared_file(settings.state))
    seen = set()

    def has_worked() -> bool:
        reader.refresh()
        if reader.heartbeat is not None:
            off_s = reader.heartbeat.at_s - time.time() - ahead_days * DAY_S
            if abs(off_s) < DAY_S:
                seen.add(reader.heartbeat.at_s)
        return len(seen) > 2

    wait_for(has_worked, "three rounds of the keeper")
    reader.close()


@pytest.mark.promise("service-wrong-clock")
def test_a_clock_that_is_years_ahead_for_a_moment_deletes_nothing(
    settings: Settings, clock: FakedClock
) -> None:
    before = stored(settings)
    assert min(before) > 0
    with kept(settings, clock) as process:
        wait_for_rounds(settings, 0)
        clock.set_ahead(AHEAD_DAYS)
        wait_for_rounds(settings, AHEAD_DAYS)
        clock.set_ahead(0)
        wait_for_rounds(settings, 0)
    assert stored(settings) == before
    assert process.stderr is not None
    log = process.stderr.read().decode()
    assert log.count("the clock jumped") == 1
    process.stderr.close()


@pytest.mark.promise("service-wrong-clock")
def test_a_keeper_that_starts_while_the_clock_is_years_ahead_deletes_nothing_at_once(
    settings: Settings, clock: FakedClock
) -> None:
    before = stored(settings)
    clock.set_ahead(AHEAD_DAYS)
    with kept(settings, clock) as process:
        wait_for_rounds(settings, AHEAD_DAYS)
    assert stored(settings) == before
    assert process.stderr is not None
    log = process.stderr.read().decode()
    assert f"decisions: {before[2]} of {before[2]} have expired" in log
    process.stderr.close()
