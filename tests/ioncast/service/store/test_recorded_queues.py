"""The jobs of the history as a queue: only with all their times, each with its own I/O nodes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.recorded_queues import RecordedQueue, recorded_queue
from ioncast.worth.queued_jobs import QueuedJob
from ioncast_base.times import in_utc
from tests.support.history import new_sha256, put_outcome, put_run

pytestmark = pytest.mark.both_databases

NOON = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
TIMES = {"submitted": -600.0, "started": 0.0, "ended": 43_200.0}


def ran(
    engine: Engine, job_id: str, io_nodes: int = 4, nodes: int | None = 8, **times: float | None
) -> str:
    """Store a job with a log, and return its SHA-256; a time that is None is unknown."""
    log = new_sha256()
    run, _ = put_run(engine, "/opt/app", logs=[log], nodes=nodes, phases=[], job_id=job_id)
    told: dict[str, Any] = {
        name: in_utc(NOON + timedelta(seconds=seconds))
        for name, seconds in (TIMES | times).items()
        if seconds is not None
    }
    put_outcome(engine, job_id=job_id, run_id=run.id, io_nodes=io_nodes, **told)
    return log


def queue_of(engine: Engine, system: str = "here", most: int = 10) -> RecordedQueue:
    with transaction(engine) as connection:
        return recorded_queue(connection, system, most)


def test_a_job_is_queued_by_the_schedulers_times_with_its_own_io_nodes(database: Engine) -> None:
    late = ran(database, "18", io_nodes=2)
    early = ran(database, "17_3", submitted=-1200, ended=60)
    found = queue_of(database)
    noon_s = NOON.timestamp()
    assert found.jobs == (
        QueuedJob(noon_s - 1200, 60, 60, 8, "app", start_s=noon_s, job_id=None),
        QueuedJob(noon_s - 600, 43_200, 43_200, 8, "app", start_s=noon_s, job_id=18),
    )
    assert found.io_nodes == ((late, 2), (early, 4))
    # The last job ends in another month than it started.
    assert found.months == "2026-11-2026-12"
    assert found.left_out == 0


@pytest.mark.parametrize(
    "unknown",
    [{"submitted": None}, {"started": None}, {"ended": None}, {"nodes": None}, {"ended": 0.0}],
    ids=str,
)
def test_a_job_without_a_time_or_its_nodes_is_left_out(
    database: Engine, unknown: dict[str, Any]
) -> None:
    ran(database, "1", **unknown)
    ran(database, "2")
    found = queue_of(database)
    assert ([job.job_id for job in found.jobs], found.left_out) == ([2], 1)


def test_the_newest_jobs_of_the_system_count(database: Engine) -> None:
    ran(database, "1")
    log = ran(database, "2")
    found = queue_of(database, most=1)
    assert [job.job_id for job in found.jobs] == [2]
    assert found.io_nodes == ((log, 4),)
    assert queue_of(database, "elsewhere").jobs == ()


def test_the_first_submission_and_end_that_were_told_stay(database: Engine) -> None:
    """The watch guesses the end of a job that slurmctld has forgotten, so slurmdbd's may differ."""
    start = in_utc(NOON)
    told = {name: in_utc(NOON + timedelta(seconds=TIMES[name])) for name in ("submitted", "ended")}
    first, _ = put_outcome(database, job_id="7", started=start)
    filled, is_new = put_outcome(database, job_id="7", started=start, **told)
    again, _ = put_outcome(database, job_id="7", started=start, ended=in_utc(NOON))
    assert (first.submitted, first.ended, is_new) == (None, None, False)
    assert {"submitted": filled.submitted, "ended": filled.ended} == told
    assert again == filled
