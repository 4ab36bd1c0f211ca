"""Validation of several applications: the way that the command line and Python share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ioncast_base.errors import InputError
from predictor.curve.asking import PredictionContext, configurations_of, read_knowledge
from predictor.curve.prediction import predict
from predictor.validation.one_application import validate_application
from predictor.validation.reruns import Rerun, by_application
from predictor.validation.result_tables import Validated
from summario.phases.values import Extraction
from summario.runs.hosts import job_nodes, node_warnings


def validate_applications(
    frontend: PredictionContext,
    reruns: Sequence[Rerun],
    jobs: Mapping[str, Extraction],
    *,
    system: str,
    nodes: int | None = None,
    engine: str | None = None,
    explained: bool = False,
) -> tuple[list[Validated], list[str]]:
    """Predict applications, and compare the predictions with their reruns.

    Compute nodes are by default those that each log names. The results are in the order in which
    the applications first appear, with warnings, a sentence each.

    Raises
    ------
    UnknownNameError
        When nothing was measured on the system, or not with that engine.
    InputError
        When the phases of an application cannot be used.
    """
    runs_of = by_application(reruns)
    nodes_of = {
        name: found.number if (found := job_nodes(nodes, jobs[name].nodes)) else None
        for name in runs_of
    }
    wanted = [
        config
        for name in runs_of
        for config in configurations_of(jobs[name].phases, nodes_of[name])
    ]
    knowledge, _, limits = read_knowledge(frontend, system, wanted, engine)
    warnings = list(limits)
    results = []
    for name, runs in runs_of.items():
        job = jobs[name]
        forecast = partial(predict, knowledge=knowledge, system=system, nodes=nodes_of[name])
        try:
            result, limits = validate_application(job.phases, runs, forecast, explained=explained)
        except InputError as error:
            error.where = error.where or name
            raise
        of_job = [*job.warnings, *node_warnings(nodes, job.nodes), *limits]
        warnings += [f"{name}: {said}" for said in of_job]
        results.append(result)
    return results, warnings
