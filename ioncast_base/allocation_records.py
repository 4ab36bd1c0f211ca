"""Jobs that share I/O nodes, and their shares, as plain values in files and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from ioncast_base.errors import InputError
from ioncast_base.knapsack import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    Allocation,
    JobCurve,
)
from ioncast_base.quantities import Bandwidth, Count, IoNodes, Whole
from ioncast_base.toml_files import in_plain_words

_MOST_POINTS = 64
# Messages for texts of a wrong form, by field.
_TEXTS = {
    "id": "must be one line of visible characters",
    "curve": "is not a number of I/O nodes",
}
_ALTERNATIVES = ("constrained-str", "int", "numbers", "decision", "prediction", "[key]")
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of a job",
    "dict_type": 'must be an object, such as {"0": 45.0, "4": 66.0}',
    "model_type": "must be an object",
    "list_type": "must be a list",
}

Curve = Annotated[
    dict[Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})$")], Bandwidth],
    Field(
        max_length=_MOST_POINTS,
        description="Expected MiB/s by number of I/O nodes; 0 is direct access. The job"
        " gets one of these numbers.",
        examples=[{"0": 45.0, "1": 27.6, "2": 53.1, "4": 66.0, "8": 75.4}],
    ),
]


class JobFields(BaseModel):
    """The fields of a job without its curve."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")] | Whole = Field(
        description="An id of this job alone, such as the scheduler's.", examples=["4711"]
    )
    weight: float = Field(
        1.0,
        ge=LEAST_WEIGHT,
        le=MOST_WEIGHT,
        description="The value of a MiB/s of this job, compared with other jobs.",
    )
    current: IoNodes | None = Field(
        None, description="The number of I/O nodes that the job has now."
    )
    fixed: bool = Field(
        False, description="The job runs and keeps its current I/O nodes; it needs no curve."
    )


class _Known(BaseModel):
    """An answer of ioncast, of which some fields are read."""

    model_config = ConfigDict(frozen=True)


class _Point(_Known):
    io_nodes: IoNodes
    expected_mib_s: Bandwidth


class _Decision(_Known):
    """An answer of `GET /v1/decisions`."""

    io_nodes: IoNodes | None
    expected_mib_s: Bandwidth | None
    alternatives: list[_Point]

    @property
    def numbers(self) -> dict[int, float]:
        found = {point.io_nodes: point.expected_mib_s for point in self.alternatives}
        if self.io_nodes is not None and self.expected_mib_s is not None:
            found[self.io_nodes] = self.expected_mib_s
        return found


class _PredictedBandwidth(_Known):
    mean: Bandwidth


class _PredictedPoint(_Known):
    io_nodes: IoNodes
    bandwidth_mib_s: _PredictedBandwidth


class _Prediction(_Known):
    """The output of `ioncast predict --format json`."""

    curve: list[_PredictedPoint]

    @property
    def numbers(self) -> dict[int, float]:
        return {point.io_nodes: point.bandwidth_mib_s.mean for point in self.curve}


def _kind(value: object) -> str:
    """Recognise the form of a curve."""
    if isinstance(value, Mapping):
        for name, field in (("decision", "alternatives"), ("prediction", "curve")):
            if field in value:
                return name
    return "numbers"


class JobRecord(JobFields):
    """A job in a file."""

    nodes: Count
    curve: Annotated[
        Annotated[Curve, Tag("numbers")]
        | Annotated[_Decision, Tag("decision")]
        | Annotated[_Prediction, Tag("prediction")],
        Discriminator(_kind),
    ] = {}

    def to_job(self) -> JobCurve:
        """Convert the record to a job."""
        curve = as_numbers(self.curve) if isinstance(self.curve, dict) else self.curve.numbers
        return job_curve(self, self.nodes, curve)


def as_numbers(curve: Curve) -> dict[int, float]:
    """Convert the keys of a curve to numbers; in JSON all keys are texts."""
    return {int(io_nodes): bandwidth for io_nodes, bandwidth in curve.items()}


def job_curve(fields: JobFields, nodes: int, curve: Mapping[int, float]) -> JobCurve:
    """Make a job of its fields and its curve; an InputError for impossible values names the job."""
    return JobCurve(
        id=str(fields.id),
        nodes=nodes,
        curve=curve,
        weight=fields.weight,
        current=fields.current,
        is_fixed=fields.fixed,
    )


def read_jobs(content: bytes, where: str) -> list[JobCurve]:
    """Read a JSON list of jobs, or {"jobs": [...]}; an InputError names the job and the field."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is not JSON: {error}", where=where, remedy="give a list of jobs"
        ) from error
    records = document.get("jobs") if isinstance(document, dict) else document
    if not isinstance(records, list):
        raise InputError(
            "a list of jobs is missing", where=where, remedy='give [...] or {"jobs": [...]}'
        )
    return [_job(record, place, where) for place, record in enumerate(records, start=1)]


def _job(record: object, place: int, where: str) -> JobCurve:
    try:
        return JobRecord.model_validate(record).to_job()
    except ValidationError as error:
        name = record.get("id") if isinstance(record, dict) else None
        raise InputError(
            _first_problem(error), where=f"{where}: job {name or f'number {place}'}"
        ) from error
    except InputError as error:
        raise InputError(
            error.what, where=f"{where}: {error.where}", remedy=error.remedy
        ) from error


def _first_problem(error: ValidationError) -> str:
    """Say what is wrong with a record, the field first."""
    problems = error.errors(include_url=False, include_input=False)
    # An unknown field comes first: it may be a misspelling of the missing one.
    problem = min(problems, key=lambda one: one["type"] != "extra_forbidden")
    # Pydantic adds the names of the alternatives that it tried; leave them out.
    field, *inside = problem["loc"] or [""]
    place = ".".join([str(field), *(str(part) for part in inside if part not in _ALTERNATIVES)])
    said = _WORDS.get(problem["type"]) or in_plain_words(problem)
    if problem["type"] == "string_pattern_mismatch":
        said = _TEXTS[str(field)]
    return f"{place}: {said}" if place else said


def to_record(allocation: Allocation) -> dict[str, Any]:
    """Convert an allocation to plain values for JSON."""
    return {
        "pool": allocation.pool,
        "io_nodes": allocation.io_nodes,
        "expected_mib_s": allocation.expected_mib_s,
        "weighted_mib_s": allocation.weighted_mib_s,
        "of_own_best": allocation.of_own_best,
        "jobs": [share._asdict() for share in allocation.shares],
    }
