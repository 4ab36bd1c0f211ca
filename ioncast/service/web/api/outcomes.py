"""Outcomes of jobs, compared with their predictions."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from flask import Blueprint
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import Connection

from benchdb.store.accepted_values import stored_time
from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.decide.prepared import StoredSummary
from ioncast.service.monitoring.decision_errors import (
    COUNTED,
    IMPLAUSIBLE,
    Drift,
    ErrorSummary,
    Judged,
)
from ioncast.service.store import outcomes as stored_outcomes
from ioncast.service.store.revisions import newest
from ioncast.service.web.api.traces import RunDetails, add_insights, store_trace
from ioncast.service.web.http.fields import (
    Bandwidth,
    DecisionId,
    IoNodeNames,
    JobId,
    RanWith,
    SystemName,
)
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.http.lists import ChosenSystem, Page, PageQuery, cut
from ioncast.service.web.http.uploads import MOST_LOGS, content_of, uploaded
from ioncast.service.web.http.writers import Note, writing
from ioncast_base.errors import BusyError, InputError
from ioncast_base.quantities import Id
from ioncast_base.toml_files import refusing
from predictor.model.plausible import is_implausible_beside
from summario.runs.hosts import job_nodes
from summario.runs.logs_of_run import named

outcomes = Blueprint("outcomes", __name__)

_SHOWN = 20

_SECOND = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})"
_Time = Annotated[
    str,
    Field(max_length=40, pattern=rf"^{_SECOND}(\.[0-9]{{1,9}})?{_ZONE}$"),
    AfterValidator(refusing(lambda text: stored_time("the time", text))),
]


class OutcomeReport(RequestModel):
    """The bandwidth that a job got."""

    system: SystemName
    job_id: JobId
    started: _Time | None = Field(
        None,
        description="When the scheduler started this run of the job, ISO 8601 with a zone. Ids of"
        " jobs come again, so it tells their runs apart.",
        examples=["2026-11-21T04:15:02Z"],
    )
    io_nodes: RanWith
    bandwidth_mib_s: Bandwidth = Field(
        description="All bytes over the time of the I/O, in MiB/s.", examples=[612.5]
    )
    decision_id: DecisionId | None = Field(
        None, description="The id of the job's decision, if it is known."
    )
    io_node_names: IoNodeNames | None = None
    submitted: _Time | None = Field(None, description="When the job was submitted, as `started`.")
    ended: _Time | None = Field(None, description="When this run of the job ended, as `started`.")


class OutcomeOfLog(OutcomeReport, RunDetails):  # type: ignore[misc]
    """Facts about a run that its log does not contain."""

    bandwidth_mib_s: Bandwidth | None = Field(  # type: ignore[assignment]
        None, description="In MiB/s; by default from the log."
    )


class OutcomeAnswer(BaseModel):
    """A stored outcome."""

    id: int
    system: str
    job_id: str = Field(description="The job. Each run of a job id has an outcome of its own.")
    started: str | None = Field(
        description="When the run started, in whole seconds: as it was told, else by its log; null"
        " if neither was sent."
    )
    decision_id: str | None = Field(description="The decision that the report names.")
    run_id: int | None = Field(description="The run in the history, if its log was sent.")
    io_nodes: int
    io_node_names: str | None = Field(
        description="The names of the I/O nodes with commas between; null if they are unknown."
    )
    bandwidth_mib_s: float
    submitted: str | None = Field(
        description="When the job was submitted; null if the scheduler did not tell it."
    )
    ended: str | None = Field(
        description="When this run ended; null if the scheduler did not tell it."
    )
    reported_at: str


class OutcomeWithDecision(OutcomeAnswer):
    """An outcome with its decision and the expected bandwidth."""

    application_id: int | None
    pattern: str | None = Field(description="The kind of I/O that moved most of the bytes.")
    decided: str | None = Field(description="The decision that was found for the job.")
    decided_io_nodes: int | None
    source: str | None = Field(description="The source of the decision.")
    expected_mib_s: float | None = Field(
        description="Expected with the job's I/O nodes, if the decision's curve has them."
    )
    implausible: bool = Field(description=IMPLAUSIBLE)
    before_change: bool = Field(
        description="Whether it is from before the newest change of the system, and does not count."
    )


class OutcomePage(Page[OutcomeWithDecision]):
    """Outcomes in the order of their ids."""


class OutcomeQuery(PageQuery):
    """A part of the list of outcomes."""

    system: SystemName | None = None
    application: Id | None = Field(None, description="Only outcomes of this application.")


class AccuracyPage(Page[ErrorSummary]):
    """Applications with outcomes, in the order of their ids."""


class MonthItem(BaseModel):
    """The errors of decisions whose outcomes were reported in a month."""

    system: str
    month: str = Field(description="The month in UTC.", examples=["2026-11"])
    outcomes: int = Field(description="The number of outcomes with an expectation.")
    error: float = Field(description="The mean relative error.")
    coverage: float = Field(description="The share of outcomes between p10 and p90.")


class ShiftItem(BaseModel):
    """Several independent applications that became faster or slower than expected together."""

    system: str
    since: str = Field(description="The date in UTC of the first run that differs.")
    programs: int = Field(description="The number of programs that agree.")
    watched: int = Field(description="The number of programs that ran before and after.")
    ratio: float = Field(description="Observed / expected of the runs that differ.")
    command: str = Field(description="The command that notes a change of the machine.")


class ValidationAnswer(BaseModel):
    """The errors so far, and drift."""

    at: str = Field(
        description=f"The time when the last {COUNTED:,} outcomes of each system were counted; they"
        " are counted again every minute."
    )
    systems: list[ErrorSummary] = Field(
        description="By system; not in pages, because each of these outcomes adds at most one."
    )
    sources: list[ErrorSummary] = Field(
        description="By the source of decisions, at most three for each system."
    )
    applications: AccuracyPage = Field(
        description="The first page of `/v1/validation/applications`."
    )
    worst: list[Judged] = Field(
        description="The largest errors of decisions on all systems, at most ten."
    )
    drift: list[Drift] = Field(
        description="By system and by kind of I/O; each of these outcomes adds at most two."
    )
    shifts: list[ShiftItem] = Field(
        description="Changes of machines that these outcomes suggest, at most one for each system."
    )
    months: list[MonthItem] = Field(
        description="By system, newest month first; at most one for each month since a system's"
        " first outcome."
    )


class AccuracyQuery(PageQuery, ChosenSystem):
    """A part of the list of applications."""


@outcomes.post("/v1/outcomes")
@operation(
    "Report the bandwidth that a job got",
    role="scheduler",
    files={
        "log": "The run's Darshan log, or the logs of its processes; the run joins the history of"
        " its application."
    },
    many_files=MOST_LOGS,
    also=(404, 409),
)
def put_outcome(body: OutcomeReport | None, form: OutcomeOfLog | None) -> tuple[OutcomeAnswer, int]:
    """Store a job's bandwidth with its decision. 200 if it was reported before.

    Job ids come again: after a requeue, and when the scheduler counts from 1 again. So an outcome
    is that of one run, known by system, job id and `started`. Without `started` it is the start of
    the log; without a log, the report is about the job's newest outcome of the last four weeks.
    """
    if body is not None:
        with writing() as (connection, note):
            return _stored(connection, note, body, None)
    assert form is not None  # noqa: S101
    uploads = uploaded("log")
    content, insights = content_of(uploads, form.nodes)
    observed = form.bandwidth_mib_s or content.bandwidth_mib_s
    if observed is None:
        raise InputError(
            "the log has no I/O time, so its bandwidth is unknown",
            where=named([upload.name for upload in uploads]),
            remedy="send bandwidth_mib_s",
        )
    with writing() as (connection, note):
        run, _ = store_trace(connection, note, uploads, content, form)
        got = form.bandwidth_mib_s or run.bandwidth_mib_s or observed
        outcome = form.model_copy(update={"bandwidth_mib_s": got})
        answer = _stored(connection, note, outcome, run.id)
    add_insights(run, uploads, job_nodes(form.nodes, content.nodes), insights)
    return answer


@outcomes.get("/v1/outcomes")
@operation("What did jobs get?")
def list_outcomes(query: OutcomeQuery) -> OutcomePage:
    """List outcomes with their decisions, in the order of ids."""
    with transaction(service().database) as connection:
        rows = stored_outcomes.joined_outcomes(
            connection,
            system=query.system,
            application_id=query.application,
            after=query.after or 0,
            limit=query.limit + 1,
        )
    shown, following = cut(rows, query.limit, lambda row: row.outcome.id)
    return OutcomePage(items=[_joined(row) for row in shown], next=following)


@outcomes.get("/v1/validation")
@operation("How large are the errors of decisions, and does anything drift?")
def validation(query: ChosenSystem) -> ValidationAnswer:
    """Answer with the numbers that were counted last."""
    found, drift = _summary("validation"), _summary("drift")
    here = "/v1/validation/applications"
    if query.system is not None:
        here += f"?{urlencode({'system': query.system})}"
    return ValidationAnswer(
        at=found.at,
        systems=_of(found.value["systems"], query.system),
        sources=_of(found.value["sources"], query.system),
        applications=_accuracy(_of(found.value["applications"], query.system), 0, _SHOWN, here),
        worst=_of(found.value["worst"], query.system),
        drift=_of(drift.value, query.system),
        shifts=_of(_summary("shifts").value, query.system),
        months=_of(_summary("months").value, query.system),
    )


@outcomes.get("/v1/validation/applications")
@operation("How large are the errors of decisions for each application?")
def validation_of_applications(query: AccuracyQuery) -> AccuracyPage:
    """List applications with outcomes, in the order of ids."""
    rows = _of(_summary("validation").value["applications"], query.system)
    return _accuracy(rows, query.after or 0, query.limit)


def _summary(name: str) -> StoredSummary:
    stored_summary = service().prepared.summaries.get(name)
    if stored_summary is None:
        raise BusyError("the keeper has not counted the outcomes yet")
    return stored_summary


def _of(rows: list[dict[str, Any]], system: str | None) -> list[Any]:
    return [row for row in rows if system in {None, row["system"]}]


def _accuracy(
    rows: list[dict[str, Any]], after: int, limit: int, path: str | None = None
) -> AccuracyPage:
    ordered = sorted(rows, key=lambda row: int(row["application_id"]))
    rest = [row for row in ordered if row["application_id"] > after]
    shown, following = cut(rest[: limit + 1], limit, lambda row: row["application_id"], path)
    return AccuracyPage.model_validate({"items": shown, "next": following})


def _stored(
    connection: Connection, note: Note, outcome: OutcomeReport, run_id: int | None
) -> tuple[OutcomeAnswer, int]:
    before = newest(connection)
    values = outcome.model_dump(include=set(OutcomeReport.model_fields))
    found, new = stored_outcomes.store_outcome(connection, **values, run_id=run_id)
    if newest(connection) != before:
        note("outcome", found.id, outcome.system)
    return OutcomeAnswer.model_validate(found, from_attributes=True), 201 if new else 200


def _joined(row: stored_outcomes.JoinedOutcome) -> OutcomeWithDecision:
    decision = row.decision
    curve = {point[0]: point[1] for point in decision.curve} if decision else {}
    return OutcomeWithDecision(
        **vars(row.outcome),
        application_id=row.application.id if row.application else None,
        pattern=row.pattern,
        decided=decision.id if decision else None,
        decided_io_nodes=decision.io_nodes if decision else None,
        source=decision.source if decision else None,
        expected_mib_s=curve.get(row.outcome.io_nodes),
        implausible=is_implausible_beside(
            row.outcome.bandwidth_mib_s, row.outcome.io_nodes, decision.curve if decision else ()
        ),
        before_change=row.is_before_change,
    )
