"""Why a job got its number of I/O nodes: its decisions, outcomes and runs, with reasons."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint
from pydantic import BaseModel, Field

from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.monitoring.decision_errors import IMPLAUSIBLE
from ioncast.service.monitoring.explained_jobs import ANOTHER_NUMBER, explain_entry
from ioncast.service.store.decisions import DecisionRow
from ioncast.service.store.jobs import JobEntry, entries_of_job
from ioncast.service.store.runs import logs_of_run
from ioncast.service.web.api.outcomes import OutcomeAnswer
from ioncast.service.web.http.fields import SystemName
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.results.diagnosed import diagnoses_of_runs
from ioncast.service.web.site_store import DiagnosisOfRun

jobs = Blueprint("jobs", __name__)

MOST_ENTRIES = 20


class JobQuery(RequestModel):
    """The part of the entries of a job that is asked for."""

    system: SystemName | None = Field(None, description="Only this system; by default all.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(
        MOST_ENTRIES, description="The largest number of entries."
    )


class ApplicationOfJob(BaseModel):
    """The application that a job ran, or was recognised as."""

    id: int
    executable: str
    program: str
    user: str


class RunOfJob(BaseModel):
    """A run that has a log, but no outcome."""

    id: int
    time: str = Field(validation_alias="ran_at", description="When the run started, or was stored.")
    tasks: int = Field(description="Processes.")
    io_nodes: int | None
    bandwidth_mib_s: float | None


class JobItem(BaseModel):
    """A run of a job, or a decision of which no run is known."""

    system: str
    job_id: str | None = Field(description="Null if only the decision is known.")
    time: str = Field(description="The start of the run, or the time of the question.")
    application: ApplicationOfJob | None
    decision: DecisionRow | None
    outcome: OutcomeAnswer | None
    run: RunOfJob | None
    diagnosis: DiagnosisOfRun | None = Field(description="Why the run was slow.")
    no_diagnosis: str | None = Field(description="Why there is no diagnosis; null with one.")
    implausible: bool = Field(description=IMPLAUSIBLE)
    headline: str = Field(description="The decision in words.")
    sentences: list[str] = Field(
        description="The reason, its basis, the predicted and the measured bandwidth."
    )


class JobAnswer(BaseModel):
    """Everything that is known about a job id."""

    job_id: str
    items: list[JobItem] = Field(description="Newest first; ids of jobs come again.")
    more: bool = Field(description="Whether there are older entries.")
    another_number: str = Field(description="How a user asks for another number of I/O nodes.")


@jobs.get("/v1/jobs/<path:job_id>")
@operation("Why did a job get its number of I/O nodes?", also=(404,))
def get_job(job_id: str, query: JobQuery) -> JobAnswer:
    """Answer with the decisions for a job, their reasons, and the bandwidths that it got.

    Slurm gives a job its id after the question, so a job is known by its id from its outcome on.
    Before that give its mark instead: AdminComment, `ioncast:ID`.
    """
    return explained_job(job_id, query.system, query.limit)


def explained_job(job_id: str, system: str | None, limit: int = MOST_ENTRIES) -> JobAnswer:
    """Read the entries of a job, and put them in words."""
    with transaction(service().database) as connection:
        entries = entries_of_job(connection, job_id, system=system, limit=limit + 1)
        shown = entries[:limit]
        logs = [
            () if entry.run_id is None else logs_of_run(connection, entry.run_id) for entry in shown
        ]
    diagnoses = diagnoses_of_runs(logs)
    return JobAnswer(
        job_id=job_id,
        items=[_item(*each) for each in zip(shown, diagnoses, strict=True)],
        more=len(entries) > limit,
        another_number=ANOTHER_NUMBER,
    )


def _item(entry: JobEntry, diagnosis: DiagnosisOfRun | str) -> JobItem:
    told, reason = (None, diagnosis) if isinstance(diagnosis, str) else (diagnosis, None)
    known = {"diagnosis": told, "no_diagnosis": reason}
    values = {**vars(entry), **vars(explain_entry(entry)), **known}
    return JobItem.model_validate(values, from_attributes=True)
