"""Advice for a run from its logs, with the seconds that it would save."""

from __future__ import annotations

from typing import Literal

from flask import Blueprint, Response
from pydantic import Field

from ioncast.insights.checks.values import Thresholds
from ioncast.service.context import service
from ioncast.service.web.api.predictions import (
    Answered,
    OwnRunAnswer,
    PredictedDecision,
    PredictedPoint,
    PredictionOfLog,
)
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import JSON
from ioncast.service.web.http.uploads import MOST_LOGS, place, uploaded
from ioncast.service.web.sandbox.advice_tasks import advise_logs
from ioncast.service.web.sandbox.tasks import Place
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.kinds import SMALL_REQUEST_BYTES
from ioncast_base.limits import LARGEST_BYTES
from ioncast_base.quantities import Whole
from predictor.curve.asking import PredictionRequest

advice = Blueprint("advice", __name__)


class AdviceOfLog(PredictionOfLog):
    """A question for advice."""

    buffer_bytes: Whole | None = Field(
        None,
        ge=SMALL_REQUEST_BYTES,
        le=LARGEST_BYTES,
        description="The size of larger requests: the buffer that the program could use. By default"
        " the smallest measured size of at least 1 MiB.",
    )


class SavedSeconds(Answered):
    """Seconds of I/O that a run saves; below 0 if it takes longer."""

    p10: float = Field(description="One of ten draws of the expected saving is below it.")
    expected: float
    p90: float = Field(description="One of ten draws of the expected saving is above it.")


class SavedWithIoNodes(SavedSeconds):
    """Seconds that a run saves if the number of I/O nodes stays the same."""

    io_nodes: int


class AdvisedCurve(Answered):
    """The prediction of a run as it is, or of the run that follows advice."""

    curve: list[PredictedPoint]
    decision: PredictedDecision


class MissingBenchmark(Answered):
    """A benchmark that would tell more."""

    configuration: str = Field(description="The command line of IOR.")
    tasks: int | None = Field(description="Processes.")
    nodes: int | None = Field(description="Compute nodes.")


class AdviceItem(Answered):
    """A piece of advice, or two together."""

    keys: list[str] = Field(description="The pieces of advice.")
    name: str = Field(description="The same in words.")
    codes: list[str] = Field(description="The checks that ask for it.")
    verdict: Literal["faster", "unsure", "slower", "not known"] = Field(
        description="unsure: the interval of the saved seconds contains 0. not known: nothing"
        " similar was measured, or the model is not sure of a gain."
    )
    sentence: str = Field(description="The gain in words.")
    matched: str | None = Field(
        description="The weakest match of the I/O that changes: exact, interpolated or model; log"
        " for asynchronous I/O; null if nothing was measured."
    )
    saved_seconds: SavedSeconds | None = Field(
        description="With today's decision today, and the decision then."
    )
    saved_by_io_nodes: list[SavedWithIoNodes]
    then: AdvisedCurve | None = Field(description="The prediction of the changed run.")
    measure: list[MissingBenchmark]


class AdviceAnswer(Answered):
    """Advice, as `ioncast advise --format json` prints it."""

    system: str
    job: int | str | None = Field(description="The run's job.")
    nodes: int | None = Field(description="Compute nodes of the job; null if unknown.")
    nodes_source: Literal["given", "log"] | None = Field(
        description="given: with the question. log: from the host names in the log."
    )
    today: AdvisedCurve
    own_run: OwnRunAnswer | None = Field(
        description="The run in the log, beside the prediction of today."
    )
    advice: list[AdviceItem] = Field(
        description="Faster, unsure, slower, not known; of each the largest expected gain first."
    )
    warnings: list[str] = Field(description="The limits of the predictions.")


@advice.post("/v1/advice")
@operation(
    "What would make the I/O of a run faster?",
    files={"log": "The Darshan log of the run, or the logs of its processes."},
    many_files=MOST_LOGS,
    answers={200: AdviceAnswer},
    also=(404,),
)
def advise(form: AdviceOfLog) -> Response:
    """Check the logs of a run, and predict the seconds that following the advice would save."""
    of = service()
    uploads = uploaded("log")
    asked = form.asked(form.numbers(), of.settings)
    found = of.children.run(_advised, place(), uploads, asked, of.thresholds, form.buffer_bytes)
    return Response(found, mimetype=JSON)


def _advised(
    database: Place,
    uploads: list[Upload],
    asked: PredictionRequest,
    thresholds: Thresholds,
    buffer_bytes: int | None,
) -> bytes:
    """Make and write the answer; it runs in a separate process, because both take time."""
    found = advise_logs(database, uploads, asked, thresholds, buffer_bytes)
    return AdviceAnswer.model_validate(found).model_dump_json().encode()
