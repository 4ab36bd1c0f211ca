"""A run on its page: of an application in the history, or of an uploaded log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ioncast.show.causes import CausesShown, causes_shown
from ioncast.show.insights import InsightsShown, insights_shown
from ioncast.show.prediction import (
    AnswerShown,
    Measured,
    PhasesShown,
    PredictionShown,
    answer_of_prediction,
    answer_shown,
    phases_of_prediction,
    phases_shown,
    prediction_shown,
)
from ioncast.show.timeline import TimelineShown, timeline_shown
from ioncast.timelines.timeline import from_record


@dataclass(frozen=True)
class RunShown:
    """A run: the answer for the next one, and the sections of its page.

    Attributes
    ----------
    answer : AnswerShown or None
        The decision on the next run; None if nothing is predicted.
    problem : str
        The reason why nothing is predicted, a clause; empty with a prediction.
    insights : InsightsShown or str
        The tables and figures, or the reason why there are no insights, a clause.
    timeline : TimelineShown or None
        The time line of a log with a trace or heat maps.
    """

    answer: AnswerShown | None
    problem: str
    causes: CausesShown
    insights: InsightsShown | str
    prediction: PredictionShown | None
    phases: PhasesShown | None
    timeline: TimelineShown | None


def run_shown(
    prediction: Mapping[str, Any] | str,
    advice: Mapping[str, Any] | str,
    insights: Mapping[str, Any] | str,
    phases: Sequence[Mapping[str, Any]],
    measured: Measured,
    ran_with: int | None,
    answer: Mapping[str, Any] | None = None,
) -> RunShown:
    """Arrange a run for its page, which depends on nothing else.

    Parameters
    ----------
    prediction, advice, insights : mapping or str
        As `ioncast predict` and `advise` print them as JSON, and `characterisation` and `checks` as
        the service stores them; a text says why they are missing.
    measured : mapping of int to sequence of float
        The bandwidths of runs with as many processes, in MiB/s by number of I/O nodes.
    ran_with : int or None
        The number of I/O nodes of the run.
    answer : mapping or None
        The answer to a scheduler's question for a job like the run, if one is prepared.
    """
    predicted = None if isinstance(prediction, str) else prediction
    if isinstance(insights, str):
        checks: Mapping[str, Any] | None = None
        shown: InsightsShown | str = insights
        drawn: Mapping[str, Any] | None = None
    else:
        checks = insights["checks"]
        shown = insights_shown(insights["characterisation"], checks)
        drawn = insights["characterisation"]["timeline"]
    return RunShown(
        answer=_answer(predicted, measured, ran_with, answer),
        problem=prediction if isinstance(prediction, str) else "",
        causes=causes_shown(checks, advice),
        insights=shown,
        prediction=None if predicted is None else prediction_shown(predicted, measured, answer),
        phases=phases_shown(phases if predicted is None else phases_of_prediction(predicted)),
        timeline=None
        if drawn is None
        else timeline_shown({"": from_record(drawn)}, are_alike=drawn["are_alike"]),
    )


def _answer(
    prediction: Mapping[str, Any] | None,
    measured: Measured,
    ran_with: int | None,
    answer: Mapping[str, Any] | None,
) -> AnswerShown | None:
    if answer is not None:
        return answer_shown(answer, measured, ran_with)
    return None if prediction is None else answer_of_prediction(prediction, measured, ran_with)
