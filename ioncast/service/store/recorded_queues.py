"""The jobs of the history as a queue that can be replayed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from benchdb.store.schema import systems
from ioncast.service.store.tables import applications, outcomes, run_logs, runs
from ioncast.worth.queued_jobs import QueuedJob

_JOB_ID = re.compile(r"\d{1,18}", re.ASCII)

_NEWEST = (
    select(outcomes.c.id)
    .join_from(outcomes, systems)
    .where(systems.c.name == bindparam("in_system"))
    .order_by(outcomes.c.id.desc())
    .limit(bindparam("most"))
)
_JOBS = (
    select(
        *(outcomes.c[name] for name in ("job_id", "submitted", "started", "ended")),
        *(runs.c.nodes, applications.c.program),
    )
    .outerjoin_from(outcomes, runs, outcomes.c.run_id == runs.c.id)
    .outerjoin(applications, runs.c.application_id == applications.c.id)
    .where(outcomes.c.id.in_(_NEWEST))
    .order_by(outcomes.c.submitted, outcomes.c.id)
)
_LOGS = (
    select(run_logs.c.sha256, outcomes.c.io_nodes)
    .join_from(run_logs, outcomes, run_logs.c.run_id == outcomes.c.run_id)
    .where(outcomes.c.id.in_(_NEWEST))
    .order_by(run_logs.c.id, outcomes.c.id)
)
_MEASURED = select(systems.c.revision).where(systems.c.name == bindparam("in_system"))


@dataclass(frozen=True)
class RecordedQueue:
    """The newest jobs with outcomes of a system, by submission.

    Attributes
    ----------
    left_out : int
        Jobs of which the submission, the start, the end or the compute nodes are unknown.
    io_nodes : tuple of (str, int)
        The SHA-256 of the jobs' logs, and the numbers of I/O nodes that their jobs had.
    months : str
        The months from the first start to the last end, as `ioncast sql` takes them.
    measured : str or None
        It changes when the measurements of the system change.
    """

    system: str
    jobs: tuple[QueuedJob, ...]
    left_out: int
    io_nodes: tuple[tuple[str, int], ...]
    months: str
    measured: str | None


def recorded_queue(connection: Connection, system: str, most: int) -> RecordedQueue:
    """Read the newest `most` jobs with outcomes of a system, and their logs."""
    given = {"in_system": system, "most": most}
    rows = connection.execute(_JOBS, given).all()
    jobs, months = [], list[str]()
    for row in rows:
        if None in (row.submitted, row.started, row.ended, row.nodes) or row.ended <= row.started:
            continue
        submit_s, start_s, end_s = map(_unix_s, (row.submitted, row.started, row.ended))
        # The limit that the job asked for is unknown, as without sacct's Timelimit.
        job = QueuedJob(
            submit_s=min(submit_s, start_s),
            run_s=end_s - start_s,
            limit_s=end_s - start_s,
            nodes=row.nodes,
            application=row.program or "",
            start_s=start_s,
            job_id=int(row.job_id) if _JOB_ID.fullmatch(row.job_id) else None,
        )
        jobs.append(job)
        months += (row.started[: len("2026-11")], row.ended[: len("2026-11")])
    return RecordedQueue(
        system=system,
        jobs=tuple(sorted(jobs, key=lambda job: job.submit_s)),
        left_out=len(rows) - len(jobs),
        io_nodes=tuple(tuple(row) for row in connection.execute(_LOGS, given)),
        months=f"{min(months)}-{max(months)}" if months else "",
        measured=connection.scalar(_MEASURED, given),
    )


def _unix_s(stored: str) -> float:
    return datetime.fromisoformat(stored).timestamp()
