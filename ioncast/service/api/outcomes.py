"""What jobs that ran got, held against what they were predicted."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from flask import Blueprint
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from benchdb.history import outcomes as stored_outcomes
from benchdb.store.database import transaction
from ioncast.service.answering.prepared import Summary
from ioncast.service.api.fields import (
    Bandwidth,
    DecisionId,
    JobId,
    JobName,
    Nodes,
    Page,
    PageQuery,
    RanWith,
    SystemName,
    UserName,
    cut,
)
from ioncast.service.api.framework import Given, operation
from ioncast.service.api.traces import Trace, store_trace
from ioncast.service.api.uploads import trace_of, uploaded
from ioncast.service.context import service
from ioncast_base.errors import BusyError, InputError
from ioncast_base.quantities import Id
from predictor.validation.decision_errors import COUNTED

outcomes = Blueprint("outcomes", __name__)

_SHOWN = 20

RanBy = Annotated[
    DecisionId, Field(description="The decision that the job ran by, if it is known.")
]


class Outcome(Given):
    """What a job got."""

    system: SystemName
    job_id: JobId
    io_nodes: RanWith
    bandwidth_mib_s: Bandwidth = Field(
        description="All bytes over the time of the I/O, in MiB/s.", examples=[612.5]
    )
    decision_id: RanBy | None = None


class OutcomeOfLog(Given):
    """What a log does not say of its run."""

    system: SystemName
    job_id: JobId
    io_nodes: RanWith
    bandwidth_mib_s: Bandwidth | None = Field(
        None, description="In MiB/s; by default as the log says."
    )
    decision_id: RanBy | None = None
    user: UserName | None = Field(
        None, description="Whose run it was; by default uid:N of the log.", examples=["alice"]
    )
    name: JobName | None = None
    nodes: Nodes | None = None


class OutcomeAnswer(BaseModel):
    """An outcome as it is stored."""

    id: int
    system: str
    job_id: str
    decision_id: str | None = Field(description="As it was reported.")
    run_id: int | None = Field(description="The run in the history, where its log is there.")
    io_nodes: int
    bandwidth_mib_s: float
    reported_at: str


class JoinedOutcome(OutcomeAnswer):
    """An outcome with what was decided and expected."""

    application_id: int | None
    pattern: str | None = Field(description="The kind of I/O that moved most of the bytes.")
    decided: str | None = Field(description="The decision that it was joined with.")
    decided_io_nodes: int | None
    source: str | None = Field(description="What the decision rests on.")
    expected_mib_s: float | None = Field(
        description="With the I/O nodes that it ran with, where the decision's curve has them."
    )


class OutcomePage(Page[JoinedOutcome]):
    """Outcomes in the order of their ids."""


class OutcomeQuery(PageQuery):
    """Which outcomes."""

    system: SystemName | None = None
    application: Id | None = Field(None, description="Only this application's.")


class AccuracyItem(BaseModel):
    """Some decisions in numbers; null where there was nothing to compare."""

    system: str
    name: str = Field(description="The system, the application or the source.")
    application_id: int | None
    decisions: int = Field(description="How many have an outcome.")
    errors: dict[str, float | int] | None = Field(description="Their relative errors.")
    coverage: float | None = Field(
        description="The share of outcomes from p10 to p90, which is made to be 0.8."
    )
    regret: float | None = Field(description="The mean share of bandwidth that was lost.")


class AccuracyPage(Page[AccuracyItem]):
    """Applications with outcomes, in the order of their ids."""


class JudgedItem(BaseModel):
    """A decision, and what its job got."""

    outcome_id: int
    decision_id: str
    system: str
    job_id: str
    application_id: int | None
    executable: str | None
    user: str | None
    pattern: str
    source: str
    decided: int | None = Field(description="I/O nodes that it was for.")
    io_nodes: int = Field(description="I/O nodes that the job ran with.")
    observed_mib_s: float
    expected: dict[str, float] | None = Field(
        description="With as many as it ran with, in MiB/s: mean, p10 and p90."
    )
    error: float | None = Field(description="|expected - observed| / observed.")
    inside: bool | None = Field(description="Whether it is from p10 to p90.")
    regret: float | None
    reported_at: str


class DriftItem(BaseModel):
    """Whether a kind of I/O on a system is still what is expected of it."""

    system: str
    pattern: str | None = Field(description="The kind of I/O; null is all of the system.")
    count: int = Field(description="Outcomes that were expected.")
    ewma: float = Field(description="The moving average of errors, in standard deviations.")
    limit: float = Field(description="What it is within as long as nothing has changed.")
    drifted: bool
    ratio: float = Field(description="Observed / expected of the last ten.")
    since: str | None


class ValidationAnswer(BaseModel):
    """The errors so far, and drift."""

    at: str = Field(
        description=f"When this was counted, of the last {COUNTED:,} outcomes of each system; it is"
        " anew every minute."
    )
    systems: list[AccuracyItem] = Field(
        description="By system; not in pages, as there is at most one for each of these outcomes."
    )
    sources: list[AccuracyItem] = Field(
        description="By what decisions rested on, at most three for each system."
    )
    applications: AccuracyPage = Field(
        description="The first page of `/v1/validation/applications`."
    )
    worst: list[JudgedItem] = Field(
        description="The largest errors of all systems' decisions, at most ten."
    )
    drift: list[DriftItem] = Field(
        description="By system and by kind of I/O, at most two for each of these outcomes."
    )


class ValidationQuery(Given):
    """Of which system."""

    system: SystemName | None = None


class AccuracyQuery(PageQuery):
    """Which applications."""

    system: SystemName | None = None


@outcomes.post("/v1/outcomes")
@operation(
    "Report what a job got",
    role="scheduler",
    body=Outcome,
    form=OutcomeOfLog,
    files={"log": "The run's Darshan log: it joins the history of its application."},
    answers={200: OutcomeAnswer, 201: OutcomeAnswer},
    also=(404, 409, 413, 503),
)
def put_outcome(body: Outcome | None, form: OutcomeOfLog | None) -> tuple[OutcomeAnswer, int]:
    """Join a job's bandwidth with its decision. 200 if it was reported before."""
    if body is not None:
        with transaction(service().database, write=True) as connection:
            return _stored(connection, body, None)
    assert form is not None  # noqa: S101
    with uploaded("log") as upload:
        content = trace_of(upload)
        observed = form.bandwidth_mib_s or content.bandwidth_mib_s
        if observed is None:
            raise InputError(
                "the log has no time of I/O, so it tells no bandwidth",
                where=upload.name,
                remedy="send bandwidth_mib_s",
            )
        told = Trace(**form.model_dump(exclude={"decision_id", "bandwidth_mib_s"}))
        outcome = Outcome(
            **form.model_dump(include={"system", "job_id", "io_nodes", "decision_id"}),
            bandwidth_mib_s=observed,
        )
        with transaction(service().database, write=True) as connection:
            run, _ = store_trace(connection, upload, content, told)
            return _stored(connection, outcome, run.id)


@outcomes.get("/v1/outcomes")
@operation("What did jobs get?", query=OutcomeQuery, answers={200: OutcomePage}, also=(503,))
def list_outcomes(query: OutcomeQuery) -> OutcomePage:
    """List outcomes with their decisions, in the order of their ids."""
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
@operation(
    "How far off are decisions, and does anything drift?",
    query=ValidationQuery,
    answers={200: ValidationAnswer},
    also=(503,),
)
def validation(query: ValidationQuery) -> ValidationAnswer:
    """Answer with what was counted last."""
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
    )


@outcomes.get("/v1/validation/applications")
@operation(
    "How far off are decisions for each application?",
    query=AccuracyQuery,
    answers={200: AccuracyPage},
    also=(503,),
)
def validation_of_applications(query: AccuracyQuery) -> AccuracyPage:
    """List applications with outcomes, by their ids."""
    rows = _of(_summary("validation").value["applications"], query.system)
    return _accuracy(rows, query.after or 0, query.limit)


def _summary(name: str) -> Summary:
    found = service().prepared.summaries.get(name)
    if found is None:
        raise BusyError("outcomes have not been counted yet")
    return found


def _of(rows: list[dict[str, Any]], system: str | None) -> list[Any]:
    return [row for row in rows if system in {None, row["system"]}]


def _accuracy(
    rows: list[dict[str, Any]], after: int, limit: int, path: str | None = None
) -> AccuracyPage:
    ordered = sorted(rows, key=lambda row: int(row["application_id"]))
    rest = [row for row in ordered if row["application_id"] > after]
    shown, following = cut(rest[: limit + 1], limit, lambda row: row["application_id"], path)
    return AccuracyPage(items=[AccuracyItem(**row) for row in shown], next=following)


def _stored(
    connection: Connection, outcome: Outcome, run_id: int | None
) -> tuple[OutcomeAnswer, int]:
    found, new = stored_outcomes.store_outcome(connection, **outcome.model_dump(), run_id=run_id)
    return OutcomeAnswer.model_validate(found, from_attributes=True), 201 if new else 200


def _joined(row: stored_outcomes.JoinedOutcome) -> JoinedOutcome:
    decision = row.decision
    curve = {point[0]: point[1] for point in decision.curve} if decision else {}
    return JoinedOutcome(
        **vars(row.outcome),
        application_id=row.application.id if row.application else None,
        pattern=row.pattern,
        decided=decision.id if decision else None,
        decided_io_nodes=decision.io_nodes if decision else None,
        source=decision.source if decision else None,
        expected_mib_s=curve.get(row.outcome.io_nodes),
    )
