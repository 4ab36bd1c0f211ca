"""Predictions of bandwidth with each number of I/O nodes, from logs or from phases."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from flask import Blueprint, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ioncast.service.context import service
from ioncast.service.settings import Settings
from ioncast.service.web.http.fields import TEXT, NodesOfLog, SystemName
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import JSON, RequestModel, checked_json
from ioncast.service.web.http.uploads import MOST_LOGS, place, uploaded
from ioncast.service.web.sandbox.tasks import MOST_PHASES, Place, predict_job, predict_logs
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.kinds import Api, FileAccess, Fsync, Operation, Order, Spatiality
from ioncast_base.limits import LARGEST_BYTES, MOST_PREDICTED_IO_NODES
from ioncast_base.quantities import Bytes, PredictedIoNodes, Whole
from predictor.curve.asking import PredictionRequest

predictions = Blueprint("predictions", __name__)

_MOST_PARTS = 64
_MOST_POINTS = 64

# Darshan counts requests, files and processes as it counts bytes.
_Whole = Bytes
_Positive = Annotated[Whole, Field(ge=1, le=LARGEST_BYTES)]
_Time = Annotated[float, Field(allow_inf_nan=False)]


def _at_most_predictable(text: str) -> str:
    if any(int(number) > MOST_PREDICTED_IO_NODES for number in text.split(",")):
        raise ValueError(f"more than {MOST_PREDICTED_IO_NODES} I/O nodes cannot be predicted")
    return text


_Numbers = Annotated[
    str, Field(pattern=r"^\d{1,5}(,\d{1,5}){0,63}$"), AfterValidator(_at_most_predictable)
]


class PartRecord(RequestModel):
    """The requests of one size in a phase."""

    request_bytes: float | None = Field(None, description="Bytes per request.")
    requests: _Positive
    bytes: _Positive


class PeriodRecord(RequestModel):
    """How a phase repeats."""

    times: _Positive = Field(description="How often the same I/O happens.")
    seconds: _Time = Field(description="Seconds from one start to the next.")
    pause_seconds: _Time = Field(description="Seconds from one end to the next start.")


class PhaseRecord(RequestModel):
    """A phase, as `ioncast phases --format json` prints it."""

    job: Annotated[Whole, Field(ge=-(2**63), lt=2**63)] | Annotated[str, Field(max_length=200)] = (
        Field(description="The job's id, the same in all phases.")
    )
    start: _Time = Field(description="Seconds since the job's start.")
    end: _Time = Field(description="Seconds since the job's start.")
    type: Operation
    rank: _Whole | Literal["all"] = Field(
        description='A rank, a number of ranks, or "all" ranks of the job.'
    )
    bytes: Bytes
    time: _Time = Field(description="The I/O time of the slowest process, in seconds.")
    api: Api
    requests: _Whole | None = Field(description="Null if it is not known.")
    spatiality: Spatiality
    files: FileAccess
    n_files: _Whole
    mode_processes: _Whole = Field(description="The most frequent number of processes per file.")
    processes: _Whole | None = Field(None, description="Processes that took part.")
    nprocs: _Whole | None = Field(None, description="Processes of the job.")
    parts: list[PartRecord] = Field(
        max_length=_MOST_PARTS,
        description="The requests by size; their bytes add up to those of the phase. None if"
        " their number is not known.",
    )
    partial: bool = Field(False, description="Whether the log lacks records.")
    log: str = Field("", max_length=1000, description="The log that the phase is from.")
    metadata_time: _Time | None = Field(
        None,
        description="The longest time of a process in metadata calls (open, close, stat and"
        " others) of the phase's files, in seconds.",
    )
    fsync: Fsync | None = Field(
        None,
        description="Whether the processes call fsync: never, once at the end, or after each"
        " write; null if it is not known.",
    )
    order: Order | None = Field(
        None,
        description="The order of the requests; null if it is not known. With POSIX and STDIO it is"
        " the spatiality. A collective phase is contiguous if each process has a block of the file,"
        " and sequential if the processes' requests interleave.",
    )
    aggregators: _Whole | None = Field(
        None, description="The processes that a collective phase used for POSIX."
    )
    elapsed: _Time | None = Field(
        None,
        description="Seconds from the first open or access of the phase's files to their last"
        " access or close, without longer pauses.",
    )
    largest_process: _Whole | None = Field(
        None, description="The bytes of the process that moves most, if a trace tells."
    )
    largest_node: _Whole | None = Field(
        None, description="The bytes of the compute node that moves most, if a trace tells."
    )
    nodes: _Whole | None = Field(
        None, description="The compute nodes that took part, if a trace tells."
    )
    block_requests: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        None,
        description="The mean number of requests of a process that follow one another in a file.",
    )
    amplification: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None,
        description="The bytes that a collective phase moved in POSIX, per byte that it asked for.",
    )
    period: PeriodRecord | None = Field(
        None, description="How the phase repeats; this does not change the prediction."
    )


class PredictionFields(RequestModel):
    """A question for a prediction."""

    system: SystemName
    nodes: NodesOfLog | None = None
    ran_with: PredictedIoNodes | None = Field(
        None, description="I/O nodes of the earlier run; its bandwidth corrects the prediction."
    )
    engine: str | None = Field(
        None,
        max_length=40,
        pattern=TEXT,
        description="The engine whose benchmarks count; by default ior, or else the engine that"
        " measured most configurations.",
    )
    tolerance: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None,
        description="The share of the best bandwidth that a decision may give up for fewer I/O"
        " nodes; by default the site's tolerance.",
    )
    min_confidence: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None,
        description="The least probability that a decision reaches 0.9 of the best bandwidth, or is"
        " better than the default; by default the site's.",
    )
    available: PredictedIoNodes | None = Field(
        None, description="The largest number of I/O nodes that may be decided."
    )
    default: PredictedIoNodes | None = Field(
        None,
        description="The decision if nothing is known, or too little; by default the site's"
        " default.",
    )

    def asked(self, io_nodes: tuple[int, ...] | None, settings: Settings) -> PredictionRequest:
        """Complete the question with the site's settings."""
        names = ("tolerance", "min_confidence", "available", "default")
        told = {name: value for name in names if (value := getattr(self, name)) is not None}
        return PredictionRequest(
            system=self.system,
            nodes=self.nodes,
            io_nodes=io_nodes,
            ran_with=self.ran_with,
            engine=self.engine,
            policy=replace(settings.rules_of(self.system), **told),
        )


class PredictionOfPhases(PredictionFields):
    """A question for a prediction from phases."""

    io_nodes: list[PredictedIoNodes] | None = Field(
        None,
        min_length=1,
        max_length=_MOST_POINTS,
        description="Numbers of I/O nodes; by default those that were measured.",
        examples=[[0, 1, 2, 4, 8]],
    )
    phases: list[PhaseRecord] = Field(
        max_length=MOST_PHASES, description="As `ioncast phases --format json` prints them."
    )


class PredictionOfLog(PredictionFields):
    """A question for a prediction from a Darshan log."""

    io_nodes: _Numbers | None = Field(
        None,
        description="Numbers of I/O nodes; by default those that were measured.",
        examples=["0,1,2,4,8"],
    )

    def numbers(self) -> tuple[int, ...] | None:
        """The numbers of I/O nodes to predict, without repetitions."""
        return tuple(sorted({*map(int, self.io_nodes.split(","))})) if self.io_nodes else None


class Answered(BaseModel):
    """A part of the JSON of a command; later versions may add fields."""

    model_config = ConfigDict(extra="allow")


class PredictedBandwidth(Answered):
    """Bandwidth of a run, in MiB/s."""

    mean: float
    p10: float = Field(description="One run in ten is slower.")
    median: float
    p90: float = Field(description="One run in ten is faster.")


class PredictedPoint(Answered):
    """The expected bandwidth with a number of I/O nodes."""

    io_nodes: int = Field(description="The number of I/O nodes; 0 is direct access.")
    bandwidth_mib_s: PredictedBandwidth
    time_s: float = Field(description="The typical I/O time in seconds.")
    basis: Literal["measured", "model"] = Field(
        description="measured: benchmarks of all parts ran with this number of I/O nodes. model:"
        " the model fills in."
    )


class PredictedBest(Answered):
    """The number of I/O nodes with the highest expected bandwidth."""

    io_nodes: int | None
    bandwidth_mib_s: float | None
    why: str


class PredictedDecision(Answered):
    """The number of I/O nodes for the scheduler."""

    io_nodes: int | None
    source: Literal["model", "default", "none"]
    bandwidth_mib_s: float | None
    tolerance: float
    within_10_percent: float | None = Field(
        description="The probability that the job gets at least 0.9 of the best bandwidth."
    )
    why: str


class EarlierRunAnswer(Answered):
    """The run that corrected the prediction."""

    io_nodes: int
    bandwidth_mib_s: float


class ExpectedShare(Answered):
    """The share of the expected runs with a number of I/O nodes that are slower than the run."""

    io_nodes: int
    slower: float


class OwnRunAnswer(Answered):
    """The run in the log, beside the prediction that it did not correct."""

    bandwidth_mib_s: float = Field(
        description="The bytes of the phases that have a benchmark, over the time of these phases."
    )
    expected: list[ExpectedShare] = Field(
        description="For the number of I/O nodes that the run had; if it is not known, for each."
    )
    is_contradiction: bool = Field(
        description="Fewer than one of 100 expected runs are as fast, or as slow, with each number."
    )
    is_impossible: bool = Field(
        description="With each number the bandwidth is more than 10 times the p90. Then nothing is"
        " decided from this prediction, unless another run is plausible."
    )
    in_words: str


class PredictionAnswer(Answered):
    """A prediction, as `ioncast predict --format json --explain` prints it."""

    system: str
    job: int | str | None = Field(description="The earlier run's job.")
    nodes: int | None = Field(description="Compute nodes of the job; null if unknown.")
    nodes_source: Literal["given", "log"] | None = Field(
        description="given: with the question. log: from the host names in the log."
    )
    curve: list[PredictedPoint]
    best: PredictedBest
    decision: PredictedDecision
    own_run: OwnRunAnswer | None = Field(
        description="null if nothing was predicted, or the log has no times."
    )
    earlier_run: EarlierRunAnswer | None
    phases: list[dict[str, Any]] = Field(
        description="Each phase with the benchmarks that its parts were matched to."
    )
    warnings: list[str] = Field(description="The limits of the prediction.")
    explanation: list[str] = Field(description="The reasons of the decision in sentences.")


@predictions.post("/v1/predictions")
@operation(
    "How fast would this job be with each number of I/O nodes?",
    body=PredictionOfPhases,
    files={"log": "The Darshan log of an earlier run, or the logs of its processes."},
    many_files=MOST_LOGS,
    answers={200: PredictionAnswer},
    also=(404,),
)
def predict(body: bytes | None, form: PredictionOfLog | None) -> Response:
    """Predict from the phases of an earlier run, or from its Darshan logs."""
    run, settings = service().children.run, service().settings
    if body is not None:
        found = run(_predicted_from_phases, place(), body, settings)
    else:
        assert form is not None  # noqa: S101
        uploads = uploaded("log")
        asked = form.asked(form.numbers(), settings)
        found = run(_predicted_from_logs, place(), uploads, asked)
    return Response(found, mimetype=JSON)


# The functions below run in a separate process, because it takes seconds to check and to write
# ten thousand phases.


def _predicted_from_phases(database: Place, text: bytes, settings: Settings) -> bytes:
    body = checked_json(PredictionOfPhases, text)
    records = [phase.model_dump() for phase in body.phases]
    asked = body.asked(tuple(sorted(set(body.io_nodes))) if body.io_nodes else None, settings)
    return _written(predict_job(database, records, asked))


def _predicted_from_logs(database: Place, uploads: list[Upload], asked: PredictionRequest) -> bytes:
    return _written(predict_logs(database, uploads, asked))


def _written(found: dict[str, Any]) -> bytes:
    return PredictionAnswer.model_validate(found).model_dump_json().encode()
