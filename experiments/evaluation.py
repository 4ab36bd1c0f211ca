"""What predictions of the applications of a data set are worth, held against their reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchdb.measurements.curves import Curve, curves
from benchdb.measurements.storing import store
from benchdb.store.database import opened_database, transaction
from experiments.datasets import BENCHMARKS, DataSet
from ioncast_base.errors import InputError
from predictor.composition.composing import MIB
from predictor.composition.prediction import Prediction, predict
from predictor.matching.configurations import Match
from predictor.matching.nearest import match
from predictor.model.fitting import fit_model
from predictor.model.system_model import Knowledge
from predictor.validation.against_reruns import (
    Comparison,
    Expected,
    Reruns,
    compare,
    mean_of_cells,
)
from predictor.validation.one_application import hold_against
from predictor.validation.result_tables import Validated
from summario.phases.values import Phase

NEAREST_MEANS = "nearest benchmarks' means"


@dataclass(frozen=True)
class Composed:
    """What the nearest benchmarks' means say of an application, one part after another.

    Attributes
    ----------
    matches : tuple of Match
        The benchmark of each part of each phase.
    mean_mib_s : mapping of int to float
        All bytes over the sum of the parts' times, by number of I/O nodes; empty where a part
        has no benchmark.
    comparison : Comparison
        That against the reruns.
    """

    matches: tuple[Match, ...]
    mean_mib_s: Mapping[int, float]
    comparison: Comparison


@dataclass(frozen=True)
class Evaluation:
    """What the benchmarks of a data set say of its applications.

    Attributes
    ----------
    curves : mapping of str to Curve
        What was measured of each pattern, by its name.
    predictions : mapping of str to Prediction
        By application.
    validated : mapping of str to Validated
        The predictions held against the reruns, by application.
    composed : mapping of str to Composed
        The same by the nearest benchmarks' means, without a model.
    """

    curves: Mapping[str, Curve]
    predictions: Mapping[str, Prediction]
    validated: Mapping[str, Validated]
    composed: Mapping[str, Composed]


def evaluate(data: DataSet) -> Evaluation:
    """Predict the applications of a data set from its benchmarks, as `ioncast validate` does.

    Raises
    ------
    InputError
        When nothing of the data set's engine is in it.
    """
    known = named_curves(data)
    knowledge = Knowledge(tuple(known.values()), fit_model(tuple(known.values())))
    system, nodes = data.provenance.system, data.provenance.nodes
    predictions = {
        name: predict(phases, knowledge, system=system, nodes=nodes)
        for name, phases in data.jobs.items()
    }
    validated = {
        name: hold_against(data.applications[name], prediction, (), explained=False)
        for name, prediction in predictions.items()
    }
    composed = {
        name: compose_means(phases, knowledge.curves, validated[name].reruns, nodes)
        for name, phases in data.jobs.items()
    }
    return Evaluation(known, predictions, validated, composed)


def named_curves(data: DataSet) -> dict[str, Curve]:
    """The curves of a data set's engine by the names of their patterns."""
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
            f"nothing in it was measured with {data.provenance.engine!r}",
            where=str(data.folder / BENCHMARKS),
        )
    return own


def compose_means(
    phases: Sequence[Phase], known: Sequence[Curve], reruns: Reruns, nodes: int
) -> Composed:
    """Put an application together from the means of the nearest benchmarks.

    Parameters
    ----------
    phases : sequence of Phase
        Of one run.
    known : sequence of Curve
        The benchmarks.
    reruns : mapping of int to sequence of float
        What the application's runs reached in MiB/s.
    nodes : int
        Compute nodes of the application.
    """
    work = [(part, match(phase, part, known, nodes)) for phase in phases for part in phase.parts]
    means = [
        (part.bytes, mean_of_cells(found.curve.bandwidths_mib_s))
        for part, found in work
        if found.curve
    ]
    total_mib = sum(part.bytes for part, _ in work) / MIB
    common = set.intersection(*(set(cells) for _, cells in means)) if means else set()
    composed = {
        n: total_mib / sum(moved / MIB / cells[n] for moved, cells in means)
        for n in sorted(common)
        if len(means) == len(work)
    }
    return Composed(
        matches=tuple(found for _, found in work),
        mean_mib_s=composed,
        comparison=compare(_certain(composed), reruns),
    )


def _certain(means: Mapping[int, float]) -> dict[int, Expected]:
    return {n: Expected(mean, mean, mean) for n, mean in means.items()}
