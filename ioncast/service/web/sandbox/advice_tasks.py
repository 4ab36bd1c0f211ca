"""The tasks that advise on a run: from the logs that a client sent, or from its phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ioncast.advice_of_run import ADVICE_MODULES, hints_of_run
from ioncast.insights.checks.values import Thresholds
from ioncast.service.web.sandbox.child import limit_part
from ioncast.service.web.sandbox.reading_insights import insights_of_run
from ioncast.service.web.sandbox.tasks import Place, extracted, frontend, phases_of, predicted
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast_base.errors import IoncastError
from predictor.curve.asking import PredictionRequest
from predictor.what_if.advice_formats import to_json
from predictor.what_if.advising import advise
from predictor.what_if.attempts import Hints
from summario.phases.values import Extraction


def advise_logs(
    place: Place,
    uploads: Sequence[Upload],
    asked: PredictionRequest,
    thresholds: Thresholds,
    buffer_bytes: int | None = None,
) -> dict[str, Any]:
    """Advise on the logs of a run, as `ioncast advise --format json`."""
    run = run_of_uploads(uploads, ADVICE_MODULES)
    found = extracted(run)
    hints = hints_of_run(run, thresholds, nodes=asked.nodes)
    return to_json(advise(frontend(place), asked, found, hints, buffer_bytes=buffer_bytes))


def advise_job(
    place: Place, records: Sequence[Mapping[str, Any]], hints: Hints, asked: PredictionRequest
) -> dict[str, Any]:
    """Advise on phases, as `advise_logs` does on logs."""
    return to_json(advise(frontend(place), asked, phases_of(records), hints))


def read_upload(
    seconds: Sequence[int],
    place: Place,
    uploads: Sequence[Upload],
    asked: PredictionRequest,
    thresholds: Thresholds,
) -> Iterator[Any]:
    """Predict from the logs of a run, make insights into it, and advise; yield each as a part.

    The logs are read once. The prediction and the advice are as `ioncast predict --format json
    --explain` and `ioncast advise --format json` print them. Insights that fail are an exception.
    """
    for_prediction, for_insights, for_advice = seconds
    limit_part(for_prediction)
    run = run_of_uploads(uploads, ADVICE_MODULES)
    found = extracted(run)
    prediction = predicted(place, found, asked)
    yield prediction
    limit_part(for_insights)
    hints = Hints(frozenset())
    try:
        made, hints = insights_of_run(run, asked.nodes, thresholds)
    except IoncastError as error:
        yield error
    else:
        yield made
    limit_part(for_advice)
    # The warnings of the logs are those of the prediction.
    with_nodes = replace(asked, nodes=prediction["nodes"])
    yield to_json(advise(frontend(place), with_nodes, Extraction(found.phases), hints))
