"""Predicts the applications of a data set, and compares the predictions with their reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchdb.measurements.curves import Curve, curves
from benchdb.measurements.storing import store
from benchdb.store.database import opened_database, transaction
from experiments.datasets import BENCHMARKS, DataSet
from ioncast_base.errors import InputError
from predictor.curve.prediction import Prediction, predict
from predictor.matching.configurations import Match
from predictor.matching.nearest import match
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.validation.against_reruns import (
    Comparison,
    Expected,
    Reruns,
    compare,
    mean_of_cells,
)
from predictor.validation.dunn import composed_repetitions
from predictor.validation.one_application import compare_with_reruns
from predictor.validation.result_tables import Validated
from summario.phases.values import Phase

NEAREST_MEANS = "nearest benchmarks' means"


@dataclass(frozen=True)
class Composed:
    """An application composed from the means of the nearest benchmarks, part by part.

    Attributes
    ----------
    matches : tuple of Match
        The benchmark of each part of each phase.
    mean_mib_s : mapping of int to float
        All bytes over the sum of the parts' times, by number of I/O nodes; empty if a part has
        no benchmark.
    comparison : Comparison
        These means compared with the reruns.
    """

    matches: tuple[Match, ...]
    mean_mib_s: Mapping[int, float]
    comparison: Comparison


@dataclass(frozen=True)
class Evaluation:
    """The predictions of the applications of a data set from its benchmarks.

    Attributes
    ----------
    curves : mapping of str to Curve
        The curves of the patterns, by name.
    predictions : mapping of str to Prediction
        Predictions by application.
    validated : mapping of str to Validated
        The predictions compared with the reruns, by application.
    composed : mapping of str to Composed
        Compositions from the means of the nearest benchmarks, by application.
    without_rates : mapping of str to Validated
        The predictions without rates of files, compared with the reruns, by application; empty if
        the data set has no rates.
    """

    curves: Mapping[str, Curve]
    predictions: Mapping[str, Prediction]
    validated: Mapping[str, Validated]
    composed: Mapping[str, Composed]
    without_rates: Mapping[str, Validated]


def evaluate(data: DataSet) -> Evaluation:
    """Predict the applications of a data set from its benchmarks, as `ioncast validate` does.

    Raises
    ------
    InputError
        If the data set has no measurements of its engine.
    """
    known = named_curves(data)
    nodes = data.provenance.nodes
    without = SystemModel(tuple(known.values()), fit_model(tuple(known.values())))
    knowledge = replace(without, file_rates=data.rates)
    predictions, validated = _predicted(data, knowledge)
    composed = {
        name: compose_means(phases, knowledge.curves, validated[name].reruns, nodes)
        for name, phases in data.jobs.items()
    }
    without_rates = _predicted(data, without)[1] if data.rates else {}
    return Evaluation(known, predictions, validated, composed, without_rates)


def _predicted(
    data: DataSet, knowledge: SystemModel
) -> tuple[dict[str, Prediction], dict[str, Validated]]:
    """Predict each application, and compare the predictions with the reruns."""
    system, nodes = data.provenance.system, data.provenance.nodes
    predictions = {
        name: predict(phases, knowledge, system=system, nodes=nodes)
        for name, phases in data.jobs.items()
    }
    return predictions, {
        name: compare_with_reruns(data.applications[name], prediction, (), explained=False)
        for name, prediction in predictions.items()
    }


def named_curves(data: DataSet) -> dict[str, Curve]:
    """Curves of a data set that its engine measured, by name of their pattern."""
    system = data.provenance.system
    with opened_database("sqlite://") as engine, transaction(engine, write=True) as connection:
        store(
            connection,
            system=system,
            file=BENCHMARKS,
            content=b"",
            file_format="ioncast-csv",
            rows=[one.measurement for one in data.benchmarks],
        )
        found = curves(connection, system)
    names = {one.measurement.config: one.name for one in data.benchmarks}
    own = {names[curve.config]: curve for curve in found if curve.engine == data.provenance.engine}
    if not own:
        raise InputError(
            f"no row was measured with {data.provenance.engine!r}, the engine of provenance.json",
            where=str(data.folder / BENCHMARKS),
        )
    return own


def compose_means(
    phases: Sequence[Phase], known: Sequence[Curve], reruns: Reruns, nodes: int
) -> Composed:
    """Compose an application from the means of the nearest benchmarks.

    Parameters
    ----------
    phases : sequence of Phase
        Phases of one run.
    known : sequence of Curve
        The benchmarks.
    reruns : mapping of int to sequence of float
        MiB/s of the application's reruns, by number of I/O nodes.
    nodes : int
        Number of compute nodes of the application.
    """
    work = [(part, match(phase, part, known, nodes)) for phase in phases for part in phase.parts]
    means = [
        (part.bytes, mean_of_cells(found.curve.bandwidths_mib_s))
        for part, found in work
        if found.curve
    ]
    # The means are composed like the repetitions of a benchmark that has only one.
    single = [(moved, {n: (mean,) for n, mean in cells.items()}) for moved, cells in means]
    repetitions = composed_repetitions(single) if len(means) == len(work) else {}
    composed = {n: mean for n, (mean,) in repetitions.items()}
    return Composed(
        matches=tuple(found for _, found in work),
        mean_mib_s=composed,
        comparison=compare(_certain(composed), reruns),
    )


def _certain(means: Mapping[int, float]) -> dict[int, Expected]:
    return {n: Expected(mean, mean, mean) for n, mean in means.items()}
