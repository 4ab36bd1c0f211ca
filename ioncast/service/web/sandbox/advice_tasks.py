"""The tasks that advise on a run: from the logs that a client sent, or from its phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ioncast.advice_of_run import ADVICE_MODULES, hints_of_run
from ioncast.insights.checks.values import Thresholds
from ioncast.service.web.sandbox.reading_insights import insights_of_run
from ioncast.service.web.sandbox.tasks import Place, extracted, frontend, phases_of, predicted
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast_base.errors import IoncastError, UnknownNameError
from predictor.curve.asking import PredictionRequest
from predictor.what_if.advice_formats import to_json as advice_to_json
from predictor.what_if.advising import advise
from predictor.what_if.attempts import Hints
from summario.phases.tables import to_record
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
    return advice_to_json(advise(frontend(place), asked, found, hints, buffer_bytes=buffer_bytes))


def advise_job(
    place: Place, records: Sequence[Mapping[str, Any]], hints: Hints, asked: PredictionRequest
) -> dict[str, Any]:
    """Advise on phases, as `advise_logs` does on logs."""
    return advice_to_json(advise(frontend(place), asked, phases_of(records), hints))


def read_upload(
    place: Place,
    uploads: Sequence[Upload],
    asked: PredictionRequest | None,
    nodes: int | None,
    thresholds: Thresholds,
) -> Iterator[Any]:
    """Predict from the logs of a run, make insights into it, and advise; yield each as a part.

    The logs are read once. The first part is a pair: the phases as `ioncast phases --format json`
    prints them, and the prediction as `ioncast predict --format json --explain` prints it, or an
    error. The advice is as `ioncast advise --format json` prints it. Insights that fail are an
    error. Without a question, and after a prediction that failed, there is no advice.
    """
    run = run_of_uploads(uploads, ADVICE_MODULES)
    found = extracted(run)
    prediction = _predicted_or_error(place, found, asked)
    yield list(map(to_record, found.phases)), prediction
    hints = Hints(frozenset())
    try:
        made, hints = insights_of_run(run, nodes, thresholds)
    except IoncastError as error:
        yield error
    else:
        yield made
    if asked is None or isinstance(prediction, IoncastError):
        yield None
        return
    # The warnings of the logs are those of the prediction.
    with_nodes = replace(asked, nodes=prediction["nodes"])
    yield advice_to_json(advise(frontend(place), with_nodes, Extraction(found.phases), hints))


def _predicted_or_error(
    place: Place, found: Extraction, asked: PredictionRequest | None
) -> dict[str, Any] | IoncastError:
    if asked is None:
        return UnknownNameError("no system was chosen, whose benchmarks a prediction needs")
    try:
        return predicted(place, found, asked)
    except IoncastError as error:
        return error
