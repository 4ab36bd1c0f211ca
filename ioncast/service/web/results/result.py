"""The result of an upload: plain values of JSON, from which its page is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from typing import Any

from ioncast.service.context import service
from ioncast.service.store.run_insights import NewInsights
from ioncast.service.web.api.predictions import PredictionOfLog
from ioncast.service.web.http.uploads import insights_limit_s, place, why_no_insights
from ioncast.service.web.results.advised import advice_limit_s, advice_or_reason
from ioncast.service.web.sandbox.advice_tasks import read_upload
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.times import in_utc
from summario.runs.logs_of_run import named

# Raise it when a page cannot show older results.
VERSION = 2
# Facts of a job that no page shows, so a kept result needs no number of a user.
_UNSHOWN = {"uid", "mounts"}


@dataclass(frozen=True)
class UploadResult:
    """Everything that the page of an upload shows, as values that JSON keeps.

    Attributes
    ----------
    name : str
        The name of the log, or of the first of several logs.
    made_at : str
        ISO 8601 in UTC.
    asked : dict
        The fields of the form; those that were left blank are None.
    prediction : dict
        As `ioncast predict --format json --explain` prints it.
    insights : dict or str
        The `version` and the documents `characterisation` and `checks` of
        `ioncast.service.web.sandbox.insight_documents`; or the reason why it has no insights.
    advice : dict or str
        As `ioncast advise --format json` prints it; or the reason why nothing is known, a clause.
    """

    version: int
    name: str
    made_at: str
    asked: dict[str, Any]
    prediction: dict[str, Any]
    insights: dict[str, Any] | str
    advice: dict[str, Any] | str


def to_document(result: UploadResult) -> str:
    """Write a result as JSON."""
    return json.dumps(asdict(result), separators=(",", ":"))


def of_values(values: dict[str, Any]) -> UploadResult:
    """Make a result from the values that `to_document` wrote."""
    names = {field.name for field in fields(UploadResult)}
    if values["version"] != VERSION or values.keys() != names:
        raise InputError(
            "the result is from another version of ioncast, so it cannot be shown",
            remedy="send the log again",
        )
    return UploadResult(**values)


def result_of_uploads(uploads: Sequence[Upload], form: PredictionOfLog) -> UploadResult:
    """Predict from the logs of a run, and make insights into it; nothing is stored.

    Raises
    ------
    IoncastError
        When nothing can be predicted. Insights and advice that fail become a reason.
    """
    of = service()
    asked = form.asked(None, of.settings)
    seconds = (of.children.limits.seconds, insights_limit_s(), advice_limit_s())
    prediction, insights, advice = of.children.run_parts(
        seconds, read_upload, place(), uploads, asked, of.thresholds
    )
    if isinstance(prediction, Exception):
        raise prediction
    return UploadResult(
        version=VERSION,
        name=named([upload.name for upload in uploads]),
        made_at=in_utc(datetime.now(timezone.utc)),
        asked=form.model_dump(mode="json"),
        prediction=_in_json(prediction),
        insights=_insights(insights),
        advice=_in_json(advice_or_reason(advice, len(prediction["phases"]))),
    )


def _in_json(document: Any) -> Any:
    """Replace the values of Python by those that JSON reads again."""
    return json.loads(json.dumps(document))


def _insights(made: NewInsights | IoncastError | RuntimeError) -> dict[str, Any] | str:
    if isinstance(made, Exception):
        return why_no_insights(made)
    characterisation = json.loads(made.characterisation)
    job = {name: value for name, value in characterisation["job"].items() if name not in _UNSHOWN}
    return {
        "version": made.version,
        "characterisation": {**characterisation, "job": job},
        "checks": json.loads(made.checks),
    }
