"""The result of an upload on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ioncast.service.web.pages.causes_view import CausesShown, causes_shown
from ioncast.service.web.pages.insights_view import InsightsShown, insights_shown
from ioncast.service.web.pages.prediction_view import PredictionShown, prediction_shown
from ioncast.service.web.results.result import UploadResult


@dataclass(frozen=True)
class ResultShown:
    """A result in words, rows and figures."""

    result: UploadResult
    prediction: PredictionShown
    causes: CausesShown
    insights: InsightsShown | str


def result_shown(result: UploadResult) -> ResultShown:
    """Arrange a result for its page, which depends on nothing else."""
    run, insights = result.prediction["earlier_run"], result.insights
    measured = {run["io_nodes"]: [run["bandwidth_mib_s"]]} if run else {}
    return ResultShown(
        result=result,
        prediction=prediction_shown(result.prediction, measured, result.asked["ran_with"]),
        causes=causes_shown(
            None if isinstance(insights, str) else insights["checks"], result.advice
        ),
        insights=_insights(insights),
    )


def _insights(stored: Mapping[str, Any] | str) -> InsightsShown | str:
    if isinstance(stored, str):
        return stored
    return insights_shown(stored["characterisation"], stored["checks"])
