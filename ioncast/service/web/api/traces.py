"""The history of applications: logs of runs that join it, and lists of runs and decisions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from flask import Blueprint, Response
from pydantic import BaseModel, Field, RootModel
from sqlalchemy import Connection

from benchdb.store.database import transaction
from benchdb.store.systems import measured_systems
from ioncast.service.context import service
from ioncast.service.store.applications import (
    ApplicationSummary,
    OrderName,
    SortName,
    application,
    applications,
    count_applications,
)
from ioncast.service.store.decisions import DecisionRow, decision, decisions
from ioncast.service.store.deleting_belongings import belongings_of_run, delete_some
from ioncast.service.store.revisions import newest
from ioncast.service.store.run_insights import Insights, NewInsights, store_insights
from ioncast.service.store.runs import NewRun, StoredRun, run_of, runs_of, store_run
from ioncast.service.web.http.fields import (
    TEXT,
    DecisionId,
    JobId,
    JobName,
    NodesOfLog,
    RanWith,
    SystemName,
    Tasks,
    UserName,
)
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.http.lists import Limit, Page, PageQuery, cut, neighbours, same_list
from ioncast.service.web.http.uploads import MOST_LOGS, content_of, uploaded, why_no_insights
from ioncast.service.web.http.writers import Note, writing
from ioncast.service.web.sandbox.insight_documents import current_insights, with_advice
from ioncast.service.web.sandbox.tasks import TraceContent
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.errors import IoncastError
from ioncast_base.limits import LARGEST_ID
from ioncast_base.wording import alike_first
from summario.runs.hosts import NodeCount, job_nodes, node_warnings

traces = Blueprint("traces", __name__)

_LOG = logging.getLogger("ioncast.service")
_SHOWN = 20


class RunDetails(RequestModel):
    """Facts about a run that its log does not contain."""

    system: SystemName
    user: UserName | None = Field(
        None, description="The run's user; by default uid:N from the log.", examples=["alice"]
    )
    name: JobName | None = None
    job_id: JobId | None = None
    nodes: NodesOfLog | None = None
    io_nodes: RanWith | None = None
    tasks: Tasks | None = None


class TraceAnswer(BaseModel):
    """A run that joined the history."""

    run_id: int
    application_id: int
    executable: str = Field(description="The program as the log names it, without arguments.")
    user: str
    tasks: int = Field(description="Processes.")
    nodes: int | None = Field(
        description="Compute nodes of the job, as given or from the host names in the log."
    )
    phases: int = Field(description="The number of phases.")
    bytes: int = Field(description="The bytes that all phases moved.")
    bandwidth_mib_s: float | None = Field(description="All bytes over the time of the phases.")
    warnings: list[str] = Field(description="Missing data: in the log, and for decisions.")


class ApplicationItem(BaseModel):
    """A program of a user on a system."""

    id: int
    system: str
    executable: str
    program: str = Field(description="The executable without its folder.")
    user: str
    runs: int = Field(description="The number of runs in the history.")
    newest: str = Field(description="The time when the newest run started, or was stored.")
    io_seconds: float = Field(
        description="The time of the slowest process in I/O and metadata, of all runs together."
    )
    stake_seconds: float = Field(description="The part of this time that is at stake.")


class ApplicationPage(Page[ApplicationItem]):
    """Applications, by default those with the newest runs first."""

    previous: str | None = Field(description="The address of the page before; null at the start.")
    total: int = Field(description="The number of applications on all pages.")


class RunItem(BaseModel):
    """A run in the history of an application."""

    id: int
    job_id: str | None
    name: str | None
    tasks: int
    nodes: int | None
    io_nodes: int | None
    bandwidth_mib_s: float | None
    started: str | None
    stored_at: str
    phases: list[dict[str, Any]] = Field(description="As `ioncast phases --format json`.")


class RunAnswer(RunItem):
    """A run with insights into its I/O."""

    insights: Insights | None = Field(
        description="Null if another version of ioncast made them, or if they failed; send all logs"
        " of the run again to get them."
    )


class RunPage(Page[RunItem]):
    """Runs, newest first."""


class DecisionItem(RootModel[DecisionRow]):
    """A scheduler's question with its answer."""


class DecisionPage(Page[DecisionRow]):
    """Decisions, newest first."""


class ApplicationAnswer(ApplicationItem):
    """An application with its newest runs and decisions."""

    newest_runs: RunPage
    newest_decisions: DecisionPage
    outcomes: str = Field(description="The address of its outcomes.")


class ApplicationQuery(RequestModel):
    """A part of the list of applications."""

    system: SystemName | None = None
    user: UserName | None = Field(None, description="Only applications of this user.")
    search: str | None = Field(
        None,
        max_length=200,
        pattern=TEXT,
        description="A text that the executable or the user contains.",
    )
    sort: SortName = Field(
        "newest",
        description="The order: start of the newest run, number of runs, program or user.",
    )
    order: OrderName | None = Field(
        None, description="By default desc for newest and runs, asc for program and user."
    )
    offset: Annotated[int, Field(ge=0, le=LARGEST_ID)] = Field(
        0, description="The number of applications on the pages before."
    )
    limit: Limit = 100


class DecisionQuery(PageQuery):
    """A part of the list of an application's decisions."""

    after: DecisionId | None = Field(  # type: ignore[assignment]
        None, description="The last decision of the page before."
    )


@traces.post("/v1/traces")
@operation(
    "Add a run to the history",
    role="scheduler",
    files={"log": "The run's Darshan log, or the logs of its processes."},
    many_files=MOST_LOGS,
    also=(409,),
)
def put_trace(form: RunDetails) -> tuple[TraceAnswer, int]:
    """Read the Darshan logs of a run and add its phases to the history of its application.

    A program without MPI writes a log for each process: send all of them in one request, each as a
    part `log`. They must have the same job and user and overlap in time.

    200 if the history has all logs already. Further logs of a stored run, sent together with all
    stored ones, become a part of it.
    """
    uploads = uploaded("log")
    content, insights = content_of(uploads, form.nodes)
    with writing() as (connection, note):
        run, new = store_trace(connection, note, uploads, content, form)
        measured = measured_systems(connection)
    of_job = job_nodes(form.nodes, content.nodes)
    no_insights = add_insights(run, uploads, of_job, insights)
    warnings = [*content.warnings, *node_warnings(run.nodes, content.nodes), *no_insights]
    if form.system not in measured:
        others = alike_first(form.system, measured)
        known = f"; systems with measurements: {others}" if others else ""
        warnings.append(f"nothing was measured on {form.system!r}, so nothing is decided{known}")
    answer = TraceAnswer(
        run_id=run.id,
        application_id=run.application.id,
        executable=run.application.executable,
        user=run.application.user,
        tasks=run.tasks,
        nodes=run.nodes,
        phases=len(run.phases),
        bytes=sum(phase["bytes"] for phase in run.phases),
        bandwidth_mib_s=run.bandwidth_mib_s,
        warnings=warnings,
    )
    return answer, 201 if new else 200


def store_trace(
    connection: Connection,
    note: Note,
    uploads: Sequence[Upload],
    content: TraceContent,
    told: RunDetails,
) -> tuple[StoredRun, bool]:
    """Add a run to the history of its application (see `ioncast.service.store.runs.store_run`)."""
    named = job_nodes(None, content.nodes)
    run = NewRun(
        **told.model_dump(include={"system", "job_id", "name", "nodes", "io_nodes"}),
        executable=content.executable,
        user=told.user or f"uid:{content.uid}",
        logs=[upload.sha256 for upload in uploads],
        tasks=told.tasks or content.tasks,
        phases=content.phases,
        bandwidth_mib_s=content.bandwidth_mib_s,
        started=content.started,
        named_nodes=named and named.number,
    )
    before = newest(connection)
    stored, is_new = store_run(connection, run)
    if newest(connection) != before:
        note("run", stored.id, told.system)
    return stored, is_new


def add_insights(
    run: StoredRun,
    uploads: Sequence[Upload],
    of_job: NodeCount | None,
    made: NewInsights | IoncastError | RuntimeError,
) -> tuple[str, ...]:
    """Store insights into a run of the history, from all its logs.

    The run is stored already, and stays so if this fails. The insights were made for so many
    compute nodes.
    """
    try:
        if run.nodes != (of_job and of_job.number):
            # An earlier request told the number.
            _, made = content_of(uploads, run.nodes)
        if isinstance(made, Exception):
            raise made
        with transaction(service().database, write=True) as connection:
            store_insights(connection, run.id, [upload.sha256 for upload in uploads], made)
    except (IoncastError, RuntimeError) as error:
        _LOG.warning("run %s is stored without insights: %s", run.id, error)
        return (why_no_insights(error),)
    return ()


@traces.get("/v1/applications")
@operation("Which applications are in the history?")
def list_applications(query: ApplicationQuery) -> ApplicationPage:
    """List applications with the number and the newest of their runs."""
    chosen = {"system": query.system, "user": query.user, "search": query.search}
    with transaction(service().database) as connection:
        total = count_applications(connection, **chosen)
        rows = applications(
            connection,
            **chosen,
            sort=query.sort,
            order=query.order,
            offset=query.offset,
            limit=query.limit,
        )
    before, following = neighbours(query.offset, query.limit, total)
    return ApplicationPage(
        items=[_application(row) for row in rows],
        next=same_list(following),
        previous=same_list(before),
        total=total,
    )


@traces.get("/v1/applications/<int:number>")
@operation("What is known about an application?", also=(404,))
def get_application(number: int) -> ApplicationAnswer:
    """Answer with the newest runs and decisions."""
    with transaction(service().database) as connection:
        summary = application(connection, number)
        runs = runs_of(connection, number, limit=_SHOWN + 1)
        asked = decisions(connection, application_id=number, limit=_SHOWN + 1)
    here = f"/v1/applications/{number}"
    return ApplicationAnswer(
        **_application(summary).model_dump(),
        newest_runs=_runs(runs, _SHOWN, f"{here}/runs"),
        newest_decisions=_decisions(asked, _SHOWN, f"{here}/decisions"),
        outcomes=f"/v1/outcomes?application={number}",
    )


@traces.get("/v1/applications/<int:number>/runs")
@operation("Which runs of an application are in the history?", also=(404,))
def list_runs(number: int, query: PageQuery) -> RunPage:
    """List runs with their phases, newest first."""
    with transaction(service().database) as connection:
        rows = runs_of(connection, number, before=query.after, limit=query.limit + 1)
    return _runs(rows, query.limit)


@traces.get("/v1/applications/<int:number>/runs/<int:run_id>")
@operation("Why was the I/O of a run slow?", also=(404,))
def get_run(number: int, run_id: int) -> RunAnswer:
    """Answer with a run, its phases, and insights: its characterisation and its findings."""
    with transaction(service().database) as connection:
        run = run_of(connection, number, run_id)
        found = current_insights(connection, run_id)
    insights = found and replace(found, checks=with_advice(found.checks))
    return RunAnswer.model_validate({**vars(run), "insights": insights})


@traces.delete("/v1/applications/<int:number>/runs/<int:run_id>")
@operation("Delete a run", role="admin", answers={204: None}, also=(404,))
def delete_run(number: int, run_id: int) -> Response:
    """Delete a run with its findings and its outcome; answers forget it within seconds."""
    with writing() as (connection, note):
        run = run_of(connection, number, run_id)
        left = delete_some(connection, belongings_of_run(connection, run_id))
        note("deletion", f"run {run_id}", run.application.system)
    while left:
        with transaction(service().database, write=True) as connection:
            left = delete_some(connection, left)
    return Response(status=204)


@traces.get("/v1/applications/<int:number>/decisions")
@operation("What was decided for an application?", also=(404,))
def list_decisions(number: int, query: DecisionQuery) -> DecisionPage:
    """List decisions for an application's jobs, newest first."""
    with transaction(service().database) as connection:
        application(connection, number)
        last = decision(connection, query.after) if query.after else None
        rows = decisions(
            connection,
            application_id=number,
            before=(last.asked_at, last.id) if last else None,
            limit=query.limit + 1,
        )
    return _decisions(rows, query.limit)


@traces.get("/v1/decisions/<number>")
@operation("What was decided?", also=(404,))
def get_decision(number: str) -> DecisionItem:
    """Answer with a decision; it is stored a second or two after it was made."""
    with transaction(service().database) as connection:
        return DecisionItem(decision(connection, number))


def _application(summary: ApplicationSummary) -> ApplicationItem:
    return ApplicationItem.model_validate(vars(summary.application) | vars(summary))


def _runs(rows: list[StoredRun], limit: int, path: str | None = None) -> RunPage:
    shown, following = cut(rows, limit, lambda run: run.id, path)
    return RunPage.model_validate({"items": shown, "next": following}, from_attributes=True)


def _decisions(rows: list[DecisionRow], limit: int, path: str | None = None) -> DecisionPage:
    shown, following = cut(rows, limit, lambda row: row.id, path)
    return DecisionPage(items=list(shown), next=following)
