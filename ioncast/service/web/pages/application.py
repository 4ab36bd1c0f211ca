"""The content of the page of an application."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.decide.questions import Question
from ioncast.service.decide.replying import find
from ioncast.service.store.applications import Application, ApplicationSummary, application
from ioncast.service.store.decisions import DecisionRow, decisions
from ioncast.service.store.outcomes import JoinedOutcome, newest_outcomes_of
from ioncast.service.store.run_insights import Insights
from ioncast.service.store.runs import StoredRun, logs_of_run, run_of, runs_of
from ioncast.service.store.same_run import Outcome
from ioncast.service.web.api.predictions import PredictionFields
from ioncast.service.web.http.problems import words_of
from ioncast.service.web.http.uploads import place
from ioncast.service.web.results.advised import advice_on
from ioncast.service.web.results.diagnosed import diagnoses_of_runs
from ioncast.service.web.sandbox.insight_documents import current_insights, with_advice
from ioncast.service.web.sandbox.tasks import predict_job
from ioncast.service.web.site_store import DiagnosisOfRun
from ioncast.show.prediction import Measured, curve_of_answer
from ioncast.show.run import RunShown, run_shown
from ioncast_base.errors import IoncastError
from ioncast_base.pages.figures import Figure
from predictor.curve.asking import PredictionRequest
from predictor.curve.drawing import by_io_nodes
from predictor.curve.drawing import runs as runs_drawn
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
        The run that is shown; None without runs.
    much_faster : StoredRun or None
        The fastest of `runs` with as many processes as `run`, if it was more than 20 % faster.
    shown : RunShown or None
        The same run on its page.
    measured : mapping of int to sequence of float
        Bandwidths of runs with the same number of processes, in MiB/s by number of I/O nodes.
    measured_figure : Figure or None
        The same bandwidths drawn, if nothing is predicted.
    diagnosis : DiagnosisOfRun or str or None
        Whether `run` was slow, or why it is unknown; None without a store.
    pairs : list of mapping or str or None
        Rows about applications that run beside it, or why they are unknown; None without a store.
    """

    summary: ApplicationSummary
    runs: list[StoredRun]
    following: int | None
    run: StoredRun | None
    much_faster: StoredRun | None
    decisions: list[DecisionRow]
    outcomes: list[JoinedOutcome]
    shown: RunShown | None
    measured: Measured
    measured_figure: Figure | None
    diagnosis: DiagnosisOfRun | str | None
    pairs: list[dict[str, Any]] | str | None


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
        logs = logs_of_run(connection, run.id) if run is not None else ()
    measured = _measured(runs, outcomes, run.tasks) if run is not None else {}
    shown = _shown(run, insights, measured) if run is not None else None
    return ApplicationShown(
        summary=summary,
        runs=runs[:_RUNS],
        following=runs[_RUNS - 1].id if len(runs) > _RUNS else None,
        run=run,
        much_faster=_much_faster(run, runs[:_RUNS], shown) if run and shown else None,
        decisions=decided,
        outcomes=outcomes[: -_DECISIONS - 1 : -1],
        shown=shown,
        measured=measured,
        measured_figure=by_io_nodes([runs_drawn(measured)])
        if shown and shown.problem and measured
        else None,
        diagnosis=diagnoses_of_runs([logs])[0] if service().store.folder else None,
        pairs=_pairs(summary.application),
    )


def _pairs(of: Application) -> list[dict[str, Any]] | str | None:
    """Tell which applications slow it down, as the store tells."""
    store = service().store
    if store.folder is None:
        return None
    try:
        pairs = store.pairs(of.system, of.program)
    except IoncastError as error:
        return words_of(error) or "the store cannot tell it now; try again later"
    # A page without pairs does without these libraries.
    from ioncast.warehouse.interference_texts import pair_texts  # noqa: PLC0415

    return pair_texts(pairs)


def _shown(run: StoredRun, stored: Insights | None, measured: Measured) -> RunShown:
    prediction = _predicted(run)
    checks = stored.checks if stored is not None else None
    advice = prediction
    if not isinstance(prediction, str):
        advice = advice_on(list(run.phases), checks, _question(run))
    insights: dict[str, Any] | str = _NO_INSIGHTS
    if stored is not None:
        checked = with_advice(stored.checks)
        insights = {"characterisation": stored.characterisation, "checks": checked}
    answer = prepared_answer(run)
    return run_shown(
        *(prediction, advice, insights, run.phases, measured, run.io_nodes),
        answer=answer if answer["application_id"] is not None else None,
    )


def _much_faster(run: StoredRun, runs: Sequence[StoredRun], shown: RunShown) -> StoredRun | None:
    """The fastest run with as many processes, if a comparison can tell much about this run."""
    prediction = shown.prediction
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


def prepared_answer(run: StoredRun) -> dict[str, Any]:
    """Find the answer to a scheduler's question for a job like a run."""
    return answer_to(run.application, run.name, run.nodes, run.tasks)


def answer_to(of: Application, name: str | None, nodes: int | None, tasks: int) -> dict[str, Any]:
    """Find the answer to a scheduler's question for a job of an application."""
    # Stored values may be larger than a question allows, so they are not checked.
    question = Question.model_construct(
        system=of.system, user=of.user, name=name, nodes=nodes, tasks=tasks
    )
    record: dict[str, Any] = json.loads(find(service(), question, [of.executable]).body)
    return record


def _predicted(run: StoredRun) -> dict[str, Any] | str:
    """Predict from a run; when that fails, return the reason instead."""
    try:
        record: dict[str, Any] = service().children.run(
            predict_job, place(), list(run.phases), _question(run)
        )
    except IoncastError as error:
        return words_of(error) or "the service failed to predict it; try again later"
    return record


def _question(run: StoredRun) -> PredictionRequest:
    # Stored values may be larger than a request allows, so they are not checked.
    fields = PredictionFields.model_construct(
        system=run.application.system, nodes=run.nodes, ran_with=run.io_nodes
    )
    return fields.asked(None, service().settings)


def _measured(runs: Sequence[StoredRun], outcomes: Sequence[JoinedOutcome], tasks: int) -> Measured:
    """Bandwidths with this number of processes; a run that has an outcome counts once."""
    reported = {outcome.outcome.run_id for outcome in outcomes}
    alike: list[Outcome | StoredRun] = [
        *(outcome.outcome for outcome in outcomes if outcome.tasks == tasks),
        *(run for run in runs if run.tasks == tasks and run.id not in reported),
    ]
    found: dict[int, list[float]] = {}
    for each in alike:
        if each.io_nodes is not None and each.bandwidth_mib_s is not None:
            found.setdefault(each.io_nodes, []).append(each.bandwidth_mib_s)
    return found
