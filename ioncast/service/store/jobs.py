"""Everything in the database about one job: its decisions, outcomes and runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection

from benchdb.store.accepted_values import is_text
from benchdb.store.systems import system_names
from ioncast.service.store.applications import Application, application
from ioncast.service.store.decisions import DecisionRow, decision, decisions
from ioncast.service.store.outcomes import JoinedOutcome, outcomes_of_decision, outcomes_of_job
from ioncast.service.store.runs import StoredRun, runs_of_job
from ioncast.service.store.same_run import Outcome
from ioncast_base.errors import UnknownNameError

# A job's mark in Slurm (AdminComment) is this and the id of its decision; after another colon the
# plugin says that the job was held.
MARK = "ioncast:"
# Characters of an id in an error message.
_LONGEST_SHOWN = 100


@dataclass(frozen=True)
class JobEntry:
    """One run of a job, or a decision for it of which no run is known.

    `job_id` is None if only the decision is known, because Slurm gives a job its id after the
    question. `time` is the start of the run; of a decision without a run the time of the question.
    """

    system: str
    job_id: str | None
    time: str
    decision: DecisionRow | None
    outcome: Outcome | None
    application: Application | None
    run: StoredRun | None = None

    @property
    def run_id(self) -> int | None:
        """The id of the run that has a log; None without one."""
        if self.outcome is not None:
            return self.outcome.run_id
        return None if self.run is None else self.run.id


def entries_of_job(
    connection: Connection, job_id: str, *, system: str | None = None, limit: int = 20
) -> list[JobEntry]:
    """List the runs of a job id and the decisions for it, newest first.

    Ids of jobs come again, on one system and on several. `job_id` may also be the id of a decision,
    as the plugin logs it, or `MARK` and this id, as Slurm shows it. An unknown job is an
    UnknownNameError.
    """
    job_entries: list[JobEntry] = []
    if is_text(job_id) and is_text(system):
        for name in system_names(connection) if system is None else [system]:
            job_entries += _entries_on(connection, name, job_id, limit)
        if not job_entries:
            job_entries += _entries_of_decision(connection, job_id, system, limit)
    if not job_entries:
        name = repr(job_id[:_LONGEST_SHOWN])
        raise UnknownNameError(f"nothing is known about job {name}", remedy=_remedy(job_id))
    return sorted(job_entries, key=lambda entry: entry.time, reverse=True)[:limit]


def _remedy(job_id: str) -> str:
    if job_id.startswith(MARK):
        return "a decision is stored some seconds after its job was submitted"
    return (
        "a job is known by its id when its outcome was reported, some minutes after its end. Before"
        f" that give its decision: `scontrol show job` shows AdminComment={MARK}ID, in shadow mode"
        " slurmctld's log has decision=ID"
    )


def _entries_on(connection: Connection, system: str, job_id: str, limit: int) -> list[JobEntry]:
    """List what is known of a job on one system."""
    joined = outcomes_of_job(connection, system, job_id, limit=limit)
    told = {each.decision.id for each in joined if each.decision}
    asked = decisions(connection, system=system, job_id=job_id, limit=limit)
    with_outcome = {each.outcome.run_id for each in joined}
    logged = [
        run for run in runs_of_job(connection, system, job_id, limit) if run.id not in with_outcome
    ]
    return [
        *_of_outcomes(joined),
        *(_of_decision(connection, each) for each in asked if each.id not in told),
        *(JobEntry(system, job_id, run.ran_at, None, None, run.application, run) for run in logged),
    ]


def _entries_of_decision(
    connection: Connection, mark: str, system: str | None, limit: int
) -> list[JobEntry]:
    """List the runs that a decision was made for, or the decision alone."""
    key = mark.removeprefix(MARK).partition(":")[0]
    try:
        row = decision(connection, key)
    except UnknownNameError:
        return []
    if system not in {None, row.system}:
        return []
    joined = outcomes_of_decision(connection, row.id, limit=limit)
    return _of_outcomes(joined) or [_of_decision(connection, row)]


def _of_outcomes(joined: Sequence[JoinedOutcome]) -> list[JobEntry]:
    return [
        JobEntry(
            *(each.outcome.system, each.outcome.job_id, each.ran_at),
            *(each.decision, each.outcome, each.application),
        )
        for each in joined
    ]


def _of_decision(connection: Connection, row: DecisionRow) -> JobEntry:
    found = None
    if row.application_id is not None:
        # The history may be that of another database by now.
        with suppress(UnknownNameError):
            found = application(connection, row.application_id).application
    return JobEntry(row.system, row.job_id, row.asked_at, row, None, found)
