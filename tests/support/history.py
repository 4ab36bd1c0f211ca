"""Runs, decisions and outcomes that tests store."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.decisions import DecisionRow, store_decisions
from ioncast.service.store.outcomes import store_outcome
from ioncast.service.store.runs import NewRun, StoredRun, store_run
from ioncast.service.store.same_run import Outcome
from summario.phases.tables import to_record
from summario.phases.values import Part, Phase

PHASE = Phase(
    job=7,
    start_seconds=0.25,
    end_seconds=1 / 3,
    operation="write",
    rank=None,
    processes=16,
    nprocs=16,
    bytes=1 << 40,
    io_time_seconds=0.1,
    api="POSIX",
    requests=16,
    spatiality="contiguous",
    file_access="shared",
    n_files=1,
    mode_processes=16,
    parts=(Part(float(1 << 36), 16),),
    log="/größe/app.darshan",
)
DECISION = DecisionRow(
    id="0123456789abcdef0123456789abcdef",
    asked_at="2026-11-21T12:00:00.000250+00:00",
    system="here",
    user="ada",
    executable="/opt/größe/app",
    name="nightly run",
    job_id="4711",
    nodes=8,
    tasks=16,
    available=4,
    io_nodes=4,
    source="history",
    expected_mib_s=1 / 3,
    confidence=0.9,
    application_id=1,
    why="3 runs of the same executable; “4” is best",
    curve=((0, 0.25, 0.2, 0.3), (4, 1 / 3, 0.3, 0.4)),
)
_logs = itertools.count()


def new_sha256() -> str:
    """The SHA-256 of a log that no other test stores."""
    return hashlib.sha256(f"log {next(_logs)}".encode()).hexdigest()


def put_run(engine: Engine, executable: str = "/opt/app", **changes: Any) -> tuple[StoredRun, bool]:
    """Store a run of 16 processes on the system `here`, with some values changed."""
    values: dict[str, Any] = {
        "system": "here",
        "executable": executable,
        "user": "ada",
        "logs": [new_sha256()],
        "tasks": 16,
        "phases": [to_record(PHASE)],
    }
    with transaction(engine, write=True) as connection:
        return store_run(connection, NewRun(**(values | changes)))


def put_decisions(engine: Engine, *rows: DecisionRow) -> int:
    """Store decisions, and return how many are new."""
    with transaction(engine, write=True) as connection:
        return store_decisions(connection, rows)


def put_outcome(engine: Engine, job_id: str = "4711", **changes: Any) -> tuple[Outcome, bool]:
    """Store the outcome of a job on the system `here`, with some values changed."""
    values: dict[str, Any] = {"system": "here", "io_nodes": 4, "bandwidth_mib_s": 70.0}
    with transaction(engine, write=True) as connection:
        return store_outcome(connection, job_id=job_id, **(values | changes))
