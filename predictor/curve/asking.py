"""Ask for a prediction: the one way that the command line and the service share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlalchemy import Connection

from benchdb.store.system_changes import change_of
from benchdb.store.systems import measured_systems, require_system
from ioncast_base.errors import DatabaseError, InputError, UnknownNameError, as_option
from ioncast_base.wording import alike_first, listed
from ior_configs import IorConfig
from predictor.curve.own_run import own_run
from predictor.curve.prediction import DecisionRules, Prediction, predict
from predictor.matching.configurations import configuration
from predictor.model.measurement_summary import MeasurementSummary, read_summary
from predictor.model.plausible import impossible
from predictor.model.system_model import SystemModel
from summario.phases import tables
from summario.phases.extract import extract_run
from summario.phases.selection import without_small
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Extraction, Phase
from summario.reading.log import PHASE_MODULES
from summario.runs.given_run import is_csv, run_of_files
from summario.runs.hosts import HOST_MODULES, job_nodes, node_warnings
from summario.runs.joining import Join

# The modules that phases, and the number of compute nodes, are read from.
RUN_MODULES = (*PHASE_MODULES, *HOST_MODULES)


class OpenTransaction(Protocol):
    """A function that opens a transaction on the benchmark database."""

    def __call__(self, *, write: bool = False) -> AbstractContextManager[Connection]:
        """Open a transaction; with `write` it may write."""


@dataclass(frozen=True)
class PredictionContext:
    """The differences between the command line and the service.

    `where` is the database's name in errors, None to leave it out; `says_unstored` also names it,
    in the warning that a model cannot be stored. `before_fitting` gets the number of configurations
    before a model is fitted, which takes seconds.
    """

    transaction: OpenTransaction
    choose_engine: str
    import_first: str
    where: str | None = None
    before_fitting: Callable[[int], None] = lambda _: None
    says_unstored: bool = True


@dataclass(frozen=True)
class PredictionRequest:
    """A question for a prediction, without the phases.

    None stands for the nodes that the log names, all measured numbers of I/O nodes, an engine of
    ioncast's choice, and an unknown number of I/O nodes of the earlier run (`ran_with`).
    """

    system: str
    nodes: int | None = None
    io_nodes: tuple[int, ...] | None = None
    ran_with: int | None = None
    engine: str | None = None
    policy: DecisionRules = field(default_factory=DecisionRules)


def ask(
    frontend: PredictionContext,
    asked: PredictionRequest,
    found: Extraction,
    *,
    is_measured: bool = True,
) -> Prediction:
    """Predict an application from the measurements in the database; store a model that was fitted.

    The warnings of the prediction begin with those of the phases `found`. Phases that were changed
    are not measured: the times of such phases are not compared with the prediction.

    Raises
    ------
    UnknownNameError
        When nothing was measured on the system, or not with that engine.
    InputError
        When the phases are of several jobs, or the policy is not valid.
    """
    nodes = job_nodes(asked.nodes, found.nodes)
    number = nodes and nodes.number
    wanted = configurations_of(found.phases, number)
    knowledge, _, limits = read_knowledge(frontend, asked.system, wanted, asked.engine)
    predicted = predict(
        found.phases,
        knowledge,
        system=asked.system,
        nodes=number,
        io_nodes=asked.io_nodes,
        ran_with=asked.ran_with,
        policy=asked.policy,
    )
    prediction = beside_own_run(predicted, asked) if is_measured else predicted
    of_nodes = node_warnings(asked.nodes, found.nodes)
    warnings = (*found.warnings, *of_nodes, *limits, *prediction.warnings)
    job = found.job if prediction.job is None else prediction.job
    return replace(prediction, job=job, nodes=nodes, warnings=warnings)


def beside_own_run(prediction: Prediction, asked: PredictionRequest) -> Prediction:
    """Compare a prediction with the run of its phases, and decide nothing if that is impossible.

    A run of the application that corrected the prediction shows that the system is the right one.
    """
    known = [
        matched.phase
        for matched in prediction.phases
        if any(found.curve for _, found in matched.parts)
    ]
    own = own_run(known, prediction.uncorrected, asked.ran_with)
    compared = replace(prediction, own_run=own)
    if own is None or not own.is_impossible or prediction.earlier_runs:
        return compared
    cause = prediction.choice.unknown or impossible(own.bandwidth_mib_s, own.p90_mib_s)
    choice = replace(prediction.choice, unknown=cause)
    return replace(compared, choice=choice, decision=choice.decide(asked.policy))


def configurations_of(phases: Iterable[Phase], nodes: int | None) -> list[IorConfig]:
    """List the configurations that do the same I/O as the parts of phases."""
    return [configuration(phase, part, nodes) for phase in phases for part in phase.parts]


def read_knowledge(
    frontend: PredictionContext,
    system: str,
    wanted: Iterable[IorConfig],
    engine: str | None = None,
    *,
    may_be_empty: bool = False,
) -> tuple[SystemModel, MeasurementSummary, tuple[str, ...]]:
    """Read the curves and the model that predict some configurations, and their summary.

    If the model must be fitted first, it is stored for the next prediction. Warnings name engines
    that are left out, and a model that cannot be stored. Without measurements of the system and the
    engine an UnknownNameError is raised, unless `may_be_empty`.
    """
    with frontend.transaction() as connection:
        summary = read_summary(connection, system, engine)
        if not (summary.rows or may_be_empty):
            raise _nothing_measured(frontend, connection, summary)
        is_new = summary.needs_model
        if is_new:
            frontend.before_fitting(len(summary.rows))
            summary = summary.fitted_to(summary.curves_to_fit(connection))
        knowledge = summary.knowledge(connection, summary.near(wanted))
    warnings = _other_engines(summary, frontend) if summary.rows else ()
    if is_new:
        try:
            _store_model(frontend, summary)
        except DatabaseError as error:
            said = f"the model is fitted each time, because it cannot be stored: {error}"
            warnings += (said,) if frontend.says_unstored else ()
    return knowledge, summary, warnings


def fit_anew(
    frontend: PredictionContext, system: str, engine: str | None = None
) -> MeasurementSummary:
    """Fit a system's model and store it, even if the stored one is current."""
    with frontend.transaction() as connection:
        require_system(connection, system)
        summary = read_summary(connection, system, engine)
        if not summary.rows:
            raise _nothing_measured(frontend, connection, summary)
        frontend.before_fitting(len(summary.rows))
        summary = summary.fitted_to(summary.curves_to_fit(connection))
    _store_model(frontend, summary)
    return summary


def read_phases(
    sources: Sequence[str], settings: ExtractionSettings = DEFAULTS, join: Join = "steps"
) -> Extraction:
    """Read phases from a CSV of phases (by its suffix) or from the Darshan logs of one run.

    `join` is the rule for logs of one run, see `runs_among`. A source that cannot be used, logs of
    several runs, and settings that a CSV cannot follow raise an InputError.
    """
    if is_csv(sources):
        return _phases_of_csv(sources[0], settings)
    return extract_run(run_of_files(sources, join, RUN_MODULES), settings)


def _phases_of_csv(source: str, settings: ExtractionSettings) -> Extraction:
    of_logs = settings.changed.keys() - {"min_share"}
    if of_logs:
        options = ", ".join(map(as_option, sorted(of_logs)))
        raise InputError(
            f"{options} can be chosen only for a Darshan log", where=source, remedy="give the log"
        )
    return without_small(tables.read_csv(source), settings.min_share)


def _store_model(frontend: PredictionContext, summary: MeasurementSummary) -> None:
    with frontend.transaction(write=True) as connection:
        summary.store_model(connection)


def _nothing_measured(
    frontend: PredictionContext, connection: Connection, found: MeasurementSummary
) -> UnknownNameError:
    system = found.system
    kind = "engines" if found.engines else "systems"
    known = listed(found.engines) or alike_first(system, measured_systems(connection))
    how = f" with {found.engine!r}" if found.engines else ""
    change = change_of(connection, system)
    if change is not None and not found.engines:
        return UnknownNameError(
            f"nothing was measured on {system!r} since the change of {change.day} ({change.why})",
            where=frontend.where,
            remedy="`ioncast campaign plan` lists the benchmarks to run again",
        )
    return UnknownNameError(
        f"nothing was measured on {system!r}{how}",
        where=frontend.where,
        remedy=f"{kind} with measurements: {known}" if known else frontend.import_first,
    )


def _other_engines(found: MeasurementSummary, frontend: PredictionContext) -> tuple[str, ...]:
    others = ", ".join(name for name in found.engines if name != found.engine)
    if not others:
        return ()
    return (
        f"the prediction uses the measurements of {found.engine}; {others} measured on this system"
        f" too, but engines are never mixed ({frontend.choose_engine})",
    )
