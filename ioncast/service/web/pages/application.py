"""The content of the page of an application."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchdb.store.database import transaction
from ioncast.insights.figures.laid_out import Figure
from ioncast.service.context import service
from ioncast.service.decide.questions import Question
from ioncast.service.decide.replying import find
from ioncast.service.store.applications import ApplicationSummary, application
from ioncast.service.store.decisions import DecisionRow, decisions
from ioncast.service.store.outcomes import JoinedOutcome, newest_outcomes_of
from ioncast.service.store.run_insights import Insights
from ioncast.service.store.runs import StoredRun, run_of, runs_of
from ioncast.service.web.http.uploads import place
from ioncast.service.web.pages.causes_view import CausesShown, causes_shown
from ioncast.service.web.pages.figures import runs_figure, timeline_figure
from ioncast.service.web.pages.frame import problem_of
from ioncast.service.web.pages.insights_view import InsightsShown, insights_shown
from ioncast.service.web.pages.prediction_view import (
    AnswerShown,
    Measured,
    PhaseRow,
    PredictionShown,
    answer_shown,
    curve_of_answer,
    longest,
    phase_rows,
    prediction_shown,
    said_of,
)
from ioncast.service.web.results.advised import advice_on
from ioncast.service.web.sandbox.insight_documents import current_insights
from ioncast.service.web.sandbox.tasks import predict_job
from ioncast_base.errors import IoncastError
from predictor.curve.asking import PredictionRequest
from predictor.curve.prediction import DecisionRules
from predictor.model.plausible import is_implausible_beside

_RUNS, _DECISIONS = 20, 10
_OUTCOMES = 1000
# A run is much faster from this ratio of bandwidths on.
_MUCH_FASTER = 1.2
_NO_INSIGHTS = (
    "this run has no findings: it was sent to an older version of ioncast, or its log could not be"
    " evaluated; send all its logs again"
)


@dataclass(frozen=True)
class ApplicationShown:
    """An application on its page.

    Attributes
    ----------
    following : int or None
        Id of the run before which the next page begins; None on the last page.
    run : StoredRun or None
        The run whose phases are shown; None without runs.
    much_faster : StoredRun or None
        The fastest of `runs` with as many processes as `run`, if it was more than 20 % faster.
    answer : AnswerShown or None
        The scheduler's answer for a job like the newest run; None until it is prepared.
    prediction : PredictionShown or None
        The prediction from the shown run alone; None if it is impossible.
    phases : tuple of PhaseRow
        The same phases as a table; of many phases, the slowest.
    slowest : str
        Sentences about the kind of I/O that took most of the time, and phases that repeat.
    measured : mapping of int to sequence of float
        Bandwidths of runs with the same number of processes, in MiB/s by number of I/O nodes.
    measured_figure : Figure or None
        The same bandwidths drawn, if nothing is predicted.
    causes : CausesShown or None
        The causes of slow I/O of the run; None without runs.
    """

    summary: ApplicationSummary
    runs: list[StoredRun]
    following: int | None
    run: StoredRun | None
    much_faster: StoredRun | None
    decisions: list[DecisionRow]
    outcomes: list[JoinedOutcome]
    answer: AnswerShown | None
    prediction: PredictionShown | None
    problem: str | None
    timeline: Figure | None
    phases: tuple[PhaseRow, ...]
    slowest: str
    measured: Measured
    measured_figure: Figure | None
    causes: CausesShown | None
    insights: InsightsShown | str


def read_application(
    application_id: int, *, run_id: int | None, before: int | None
) -> ApplicationShown:
    """Read an application with its newest runs, and predict from one of them."""
    with transaction(service().database) as connection:
        summary = application(connection, application_id)
        runs = runs_of(connection, application_id, before=before, limit=_RUNS + 1)
        newest = next(iter(runs_of(connection, application_id, limit=1)), None)
        run = run_of(connection, application_id, run_id) if run_id is not None else newest
        decided = decisions(connection, application_id=application_id, limit=_DECISIONS)
        outcomes = newest_outcomes_of(connection, application_id, limit=_OUTCOMES)
        insights = current_insights(connection, run.id) if run is not None else None
    measured = _measured(runs, outcomes, run.tasks) if run is not None else {}
    prediction, problem = _predicted(run, measured) if run is not None else (None, None)
    alone = phase_rows(run.phases) if run is not None and prediction is None else ()
    return ApplicationShown(
        summary=summary,
        runs=runs[:_RUNS],
        following=runs[_RUNS - 1].id if len(runs) > _RUNS else None,
        run=run,
        much_faster=_much_faster(run, runs[:_RUNS], prediction) if run is not None else None,
        decisions=decided,
        outcomes=outcomes[: -_DECISIONS - 1 : -1],
        answer=_answered(newest, runs, outcomes) if newest is not None else None,
        prediction=prediction,
        problem=problem,
        timeline=timeline_figure([phase.record for phase in alone]) if alone else None,
        phases=longest(alone),
        slowest=said_of(alone),
        measured=measured,
        measured_figure=runs_figure(measured) if alone and measured else None,
        causes=_causes(run, insights, problem) if run is not None else None,
        insights=_insights(insights),
    )


def _much_faster(
    run: StoredRun, runs: Sequence[StoredRun], prediction: PredictionShown | None
) -> StoredRun | None:
    """The fastest run with as many processes, if a comparison can tell much about this run."""
    points = prediction.points if prediction else curve_of_answer(prepared_answer(run))
    if run.bandwidth_mib_s is None:
        return None
    known = [
        (each.bandwidth_mib_s, each.id, each)
        for each in runs
        if each.tasks == run.tasks
        and each.bandwidth_mib_s is not None
        and not is_implausible_beside(each.bandwidth_mib_s, each.io_nodes, points)
    ]
    fastest_mib_s, _, fastest = max(known, default=(0.0, 0, run))
    return fastest if fastest_mib_s > _MUCH_FASTER * run.bandwidth_mib_s else None


def _causes(run: StoredRun, stored: Insights | None, problem: str | None) -> CausesShown:
    """Advise on a run, unless nothing can be predicted."""
    checks = stored.checks if stored is not None else None
    phases = list(run.phases)
    return causes_shown(checks, problem or advice_on(phases, checks, _question(run)))


def _insights(stored: Insights | None) -> InsightsShown | str:
    if stored is None:
        return _NO_INSIGHTS
    return insights_shown(stored.characterisation, stored.checks)


def prepared_answer(run: StoredRun) -> dict[str, Any]:
    """Find the answer to a scheduler's question for a job like a run."""
    of = run.application
    # Stored values may be larger than a question allows, so they are not checked.
    question = Question.model_construct(
        system=of.system, user=of.user, name=run.name, nodes=run.nodes, tasks=run.tasks
    )
    record: dict[str, Any] = json.loads(find(service(), question, [of.executable]).body)
    return record


def _answered(
    run: StoredRun, runs: Sequence[StoredRun], outcomes: Sequence[JoinedOutcome]
) -> AnswerShown | None:
    """Answer a scheduler's question for a job like a run; None if nothing is known."""
    record = prepared_answer(run)
    if record["application_id"] is None:
        return None
    return answer_shown(record, _measured(runs, outcomes, run.tasks), run.io_nodes)


def _predicted(run: StoredRun, measured: Measured) -> tuple[PredictionShown | None, str | None]:
    """Predict from a run; when that fails, return the reason instead."""
    try:
        record: dict[str, Any] = service().children.run(
            predict_job, place(), list(run.phases), _question(run)
        )
    except IoncastError as error:
        return None, problem_of(error).get("detail")
    return prediction_shown(record, measured, run.io_nodes), None


def _question(run: StoredRun) -> PredictionRequest:
    settings, system = service().settings, run.application.system
    return PredictionRequest(
        system=system,
        nodes=run.nodes,
        ran_with=run.io_nodes,
        policy=DecisionRules(
            tolerance=settings.tolerance_of(system),
            min_confidence=settings.min_confidence_of(system),
            default=settings.default_of(system),
        ),
    )


def _measured(runs: Sequence[StoredRun], outcomes: Sequence[JoinedOutcome], tasks: int) -> Measured:
    """Bandwidths with this number of processes; a run that has an outcome counts once."""
    reported = {outcome.outcome.run_id for outcome in outcomes}
    pairs = [
        *(
            (outcome.outcome.io_nodes, outcome.outcome.bandwidth_mib_s)
            for outcome in outcomes
            if outcome.tasks == tasks
        ),
        *(
            (run.io_nodes, run.bandwidth_mib_s)
            for run in runs
            if run.id not in reported and run.tasks == tasks
        ),
    ]
    found: dict[int, list[float]] = {}
    for io_nodes, bandwidth_mib_s in pairs:
        if io_nodes is not None and bandwidth_mib_s is not None:
            found.setdefault(io_nodes, []).append(bandwidth_mib_s)
    return found
