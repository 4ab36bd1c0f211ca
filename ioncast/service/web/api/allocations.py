"""I/O nodes divided among several jobs, so that all together get the best by their curves."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from ioncast.service.context import service
from ioncast.service.store.decisions import decision
from ioncast.service.web.http.fields import DecisionId
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import JSON, RequestModel, checked_json
from ioncast.service.web.http.uploads import place
from ioncast.service.web.sandbox.tasks import Place
from ioncast_base import allocation_texts as option_texts
from ioncast_base.allocation_records import Curve, JobFields, as_numbers, job_curve, to_record
from ioncast_base.errors import InputError
from ioncast_base.knapsack import JobCurve, ObjectiveName, WeightName, allocate, weighted
from ioncast_base.quantities import Count, Whole

allocations = Blueprint("allocations", __name__)

_MOST_JOBS = 2_000
_MOST_IN_POOL = 65_536
# Points of all jobs' curves times I/O nodes of the pool; this many take about a second.
_MOST_STEPS = 400_000_000


class SharingJob(JobFields):
    """A job that shares I/O nodes with others."""

    nodes: Count | None = Field(
        None, description="Compute nodes of the job; by default those of its decision."
    )
    curve: Curve | None = None
    decision_id: DecisionId | None = Field(
        None,
        description="Instead of a curve: the id of the decision that contains it. A decision is"
        " stored within seconds of its answer.",
    )


class AllocationAsked(RequestModel):
    """A pool of I/O nodes, the jobs that share it, and the sum that counts."""

    pool: Whole = Field(
        ge=0,
        le=_MOST_IN_POOL,
        description=option_texts.POOL,
        examples=[16],
    )
    jobs: list[SharingJob] = Field(max_length=_MOST_JOBS)
    weight: WeightName = Field("given", description=option_texts.WEIGHT)
    objective: ObjectiveName = Field("sum", description=option_texts.OBJECTIVE)
    minimum_gain: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description=option_texts.MINIMUM_GAIN
    )


class ShareAnswer(BaseModel):
    """The I/O nodes of a job."""

    id: str
    io_nodes: int | None = Field(
        description="The number of I/O nodes; 0 is direct access. Null: the job waits, because it"
        " needs I/O nodes and no I/O nodes are left."
    )
    expected_mib_s: float | None = Field(
        description="With these I/O nodes; null if the curve of a fixed job lacks their number."
    )


class AllocationAnswer(BaseModel):
    """The I/O nodes of all jobs."""

    pool: int
    io_nodes: int = Field(description="The I/O nodes that all jobs get.")
    expected_mib_s: float = Field(description="The sum of all known bandwidths.")
    weighted_mib_s: float = Field(description="The same sum with the jobs' weights.")
    of_own_best: float | None = Field(
        description="The mean share of their own highest bandwidth that jobs get, with the jobs'"
        " weights; null if all jobs are fixed."
    )
    jobs: list[ShareAnswer] = Field(description="In the order of the request.")


@allocations.post("/v1/allocations")
@operation(
    "How should jobs share the I/O nodes?",
    body=AllocationAsked,
    answers={200: AllocationAnswer},
    also=(404,),
)
def divide(body: bytes) -> Response:
    """Divide a pool of I/O nodes among jobs by their curves; nothing is stored."""
    return Response(service().children.run(_divided, place(), body), mimetype=JSON)


# The functions below run in a separate process: dividing many I/O nodes among many jobs takes a
# second.


def _divided(database: Place, text: bytes) -> bytes:
    asked = checked_json(AllocationAsked, text)
    jobs = weighted(_jobs(database, asked.jobs), asked.weight)
    if sum(len(job.curve) for job in jobs) * asked.pool > _MOST_STEPS:
        raise InputError(
            f"{asked.pool} I/O nodes among {len(jobs)} jobs are too many to be divided in one"
            " request",
            remedy="send fewer jobs, or curves with fewer numbers of I/O nodes",
        )
    allocation = allocate(
        jobs, asked.pool, objective=asked.objective, minimum_gain=asked.minimum_gain
    )
    return AllocationAnswer.model_validate(to_record(allocation)).model_dump_json().encode()


def _jobs(database: Place, asked: list[SharingJob]) -> list[JobCurve]:
    if all(job.decision_id is None for job in asked):
        return [_job(job, None) for job in asked]
    with database.transaction() as connection:
        return [_job(job, connection) for job in asked]


def _job(asked: SharingJob, connection: Connection | None) -> JobCurve:
    """The curve of a job; its decision tells missing values."""
    nodes, curve = asked.nodes, as_numbers(asked.curve or {})
    if connection is not None and asked.decision_id is not None:
        if curve:
            raise InputError(
                "it has a curve and a decision_id; leave one out", where=f"job {asked.id}"
            )
        decided = decision(connection, asked.decision_id)
        nodes = decided.nodes if nodes is None else nodes
        curve = {
            io_nodes: expected
            for io_nodes, expected, *_ in decided.curve
            # A number that is tried stays.
            if not decided.explored or io_nodes == decided.io_nodes
        }
    if nodes is None:
        raise InputError(
            "the number of its compute nodes is unknown",
            where=f"job {asked.id}",
            remedy="send nodes",
        )
    return job_curve(asked, nodes, curve)
