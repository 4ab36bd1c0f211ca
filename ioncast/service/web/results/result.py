"""The result of an upload: plain values of JSON, from which its page is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from typing import Any

from ioncast.service.context import service
from ioncast.service.settings import Settings
from ioncast.service.store.run_insights import NewInsights
from ioncast.service.web.api.predictions import PredictionOfLog
from ioncast.service.web.http.fields import NodesOfLog, SystemName
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.http.problems import words_of
from ioncast.service.web.http.uploads import insights_limit_s, place, why_no_insights
from ioncast.service.web.results.advised import advice_limit_s, advice_or_reason
from ioncast.service.web.sandbox.advice_tasks import read_upload
from ioncast.service.web.sandbox.uploaded_logs import Upload
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.quantities import PredictedIoNodes
from ioncast_base.times import in_utc
from predictor.curve.asking import PredictionRequest
from summario.runs.logs_of_run import named

# Raise it when a page cannot show older results.
VERSION = 4
# Facts of a job that no page shows, so a kept result needs no number of a user.
_UNSHOWN = {"uid", "mounts"}


class UploadForm(RequestModel):
    """The form beside an uploaded log. Without a system nothing is predicted."""

    system: SystemName | None = None
    nodes: NodesOfLog | None = None
    ran_with: PredictedIoNodes | None = None
    available: PredictedIoNodes | None = None

    def asked(self, settings: Settings) -> PredictionRequest | None:
        """Complete the question with the site's settings."""
        if self.system is None:
            return None
        return PredictionOfLog(**self.model_dump()).asked(None, settings)


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
    prediction : dict or str
        As `ioncast predict --format json --explain` prints it; or the reason why nothing is
        predicted, a clause.
    phases : list of dict
        As `ioncast phases --format json` prints them; empty with a prediction, which has them.
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
    prediction: dict[str, Any] | str
    phases: list[dict[str, Any]]
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


def result_of_uploads(uploads: Sequence[Upload], form: UploadForm) -> UploadResult:
    """Read the logs of a run, predict from them, and make insights; nothing is stored.

    Raises
    ------
    IoncastError
        When a log cannot be read. A prediction, insights and advice that fail become a reason.
    """
    of = service()
    asked = form.asked(of.settings)
    seconds = (of.children.limits.seconds, insights_limit_s(), advice_limit_s())
    read, insights, advice = of.children.run_parts(
        seconds, read_upload, place(), uploads, asked, form.nodes, of.thresholds
    )
    if isinstance(read, Exception):
        raise read
    phases, prediction = read
    if isinstance(prediction, IoncastError):
        prediction = words_of(prediction) or "the service failed to predict it; try again later"
    is_predicted = not isinstance(prediction, str)
    return UploadResult(
        version=VERSION,
        name=named([upload.name for upload in uploads]),
        made_at=in_utc(datetime.now(timezone.utc)),
        asked=form.model_dump(mode="json"),
        prediction=_in_json(prediction),
        phases=[] if is_predicted else _in_json(phases),
        insights=_insights(insights),
        advice=_in_json(advice_or_reason(advice, len(phases))) if is_predicted else prediction,
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
