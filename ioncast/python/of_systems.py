"""Functions on a system's measurements: matches, curves, predictions, advice, validations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from os import fspath

import pandas as pd

from benchdb.import_command import read_results, result_in_words, store_results
from benchdb.measurements.curves import curves as read_curves
from benchdb.measurements.file_imports import MeasurementsFile
from benchdb.measurements.importers import ImportOptions
from benchdb.store.database import (
    default_location,
    opened_database,
    transaction_on,
    without_password,
)
from benchdb.store.systems import check_system_name, require_system
from ioncast.advice_of_run import ADVICE_MODULES, advise_run
from ioncast.python.given_logs import (
    Logs,
    Path,
    Phases,
    extraction_of,
    run_of_logs,
)
from ioncast.python.of_logs import phases_figure, site_thresholds
from ioncast.python.results import Result, below_each_other, interface
from ioncast.python.rows import (
    AdvisedRow,
    Compared,
    Imported,
    MeasuredRow,
    Predicted,
    RequestSize,
    advised_row,
    compared_rows,
    measured_rows,
    predicted_row,
    request_size,
)
from ioncast.show.figures import measured_figure
from ioncast_base.command_options import DATABASE_VARIABLE
from ioncast_base.errors import InputError
from ioncast_base.limits import MOST_PREDICTED_IO_NODES
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import counted, sentence
from predictor.curve.asking import PredictionContext, PredictionRequest, ask
from predictor.curve.drawing import curve_figure
from predictor.curve.explanation import explain
from predictor.curve.prediction import DecisionRules, Prediction
from predictor.matching.configurations import match_warnings
from predictor.validation.one_application import check_logs
from predictor.validation.report_page import bandwidth_figure
from predictor.validation.reruns import Rerun, by_application, read_reruns, reruns_of_text
from predictor.validation.result_tables import Validated
from predictor.validation.several_applications import validate_applications
from predictor.what_if.advice_drawing import gain_figure
from predictor.what_if.advice_words import (
    conclusion,
    is_contradicted,
    name_of,
    name_of_today,
    today_in_words,
)
from predictor.what_if.advising import Advised
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.runs.hosts import job_nodes, node_warnings
from summario.runs.joining import Join


@interface
def match(
    phases: Phases,
    *,
    nodes: int | None = None,
    join: Join = "steps",
    settings: ExtractionSettings = DEFAULTS,
) -> Result:
    """Find the IOR run that does the same I/O as each part of each phase, as `ioncast match` does.

    Parameters
    ----------
    phases : str, path, DarshanReport, sequence of them, Result or DataFrame
        The logs of one run; or a result of `ioncast.phases`, or its frame, which may be edited.
    nodes : int, optional
        Compute nodes of the job; by default those that the log names.
    join, settings
        As for `ioncast.phases`.

    Returns
    -------
    Result
        A `RequestSize` in each row. `details` is the `Extraction`, and the figure shows its phases.

    Raises
    ------
    IoncastError
        When a log cannot be read, logs are of several runs, or a row of a frame is no phase.

    Examples
    --------
    >>> import ioncast
    >>> found = ioncast.match("experiments/data/testbed/logs/periodic-ionodes0.darshan").frame
    >>> sorted(set(found["api"])), sorted(set(found["operation"]))
    (['POSIX'], ['write'])
    """
    found = extraction_of(phases, join, settings)
    of_job = job_nodes(nodes, found.nodes)
    number = of_job and of_job.number
    rows = [
        request_size(index, phase, part, number)
        for index, phase in enumerate(found.phases)
        for part in phase.parts
    ]
    return Result(
        "IOR runs that do the same I/O",
        pd.DataFrame(rows, columns=list(RequestSize._fields)),
        found,
        tuple(filter(None, [of_job and of_job.in_words])),
        (*found.warnings, *node_warnings(nodes, found.nodes), *match_warnings(found.phases)),
        partial(phases_figure, [("", found)]),
    )


@interface
def curves(system: str, *, engine: str | None = None, db: Path | None = None) -> Result:
    """Read the measured bandwidths of a system, which predictions rest on.

    Parameters
    ----------
    system : str
        The system.
    engine : str, optional
        Only measurements of this program, such as "ior"; by default those of all.
    db : str or path, optional
        The database: an SQLite file or a SQLAlchemy URL; by default IONCAST_DB, or the file that
        `ioncast` uses without it.

    Returns
    -------
    Result
        A `MeasuredRow` in each row. Measurements that are set apart are left out. `details` has the
        curves.

    Raises
    ------
    IoncastError
        When the database cannot be read or does not know the system.
    """
    with transaction_on(location_of(db)) as connection:
        require_system(connection, system)
        found = [each for each in read_curves(connection, system) if engine in {None, each.engine}]
    rows = [row for curve in found for row in measured_rows(curve)]
    return Result(
        f"Measurements of {system}",
        pd.DataFrame(rows, columns=list(MeasuredRow._fields)),
        tuple(found),
        draw=partial(measured_figure, found) if found else "nothing was measured",
    )


@interface
def predict(
    phases: Phases,
    system: str,
    *,
    nodes: int | None = None,
    io_nodes: Iterable[int] | None = None,
    ran_with: int | None = None,
    engine: str | None = None,
    tolerance: float = DecisionRules.tolerance,
    min_confidence: float = DecisionRules.min_confidence,
    available: int | None = None,
    default: int | None = None,
    join: Join = "steps",
    settings: ExtractionSettings = DEFAULTS,
    db: Path | None = None,
) -> Result:
    """Predict a job's bandwidth with each number of I/O nodes, as `ioncast predict` does.

    Parameters
    ----------
    phases, join, settings
        As for `match`: an earlier run of the same application. A frame is a plan and no run, so
        its times are not compared with the prediction.
    system : str
        The system to predict for.
    nodes : int, optional
        Compute nodes of the job; by default those that the log names.
    io_nodes : iterable of int, optional
        The numbers of I/O nodes; by default all that were measured for I/O of the job's kinds.
    ran_with : int, optional
        The number of I/O nodes of the earlier run, whose bandwidth then corrects the prediction.
    engine : str, optional
        The program whose benchmarks to use.
    tolerance : float
        The share of the best bandwidth that a decision may give up for fewer I/O nodes.
    min_confidence : float
        The least probability that a decision reaches 90 % of the best bandwidth, or is better than
        the default.
    available, default : int, optional
        The most I/O nodes to decide for, and the decision where nothing is known, or too little.
    db : str or path, optional
        As for `curves`.

    Returns
    -------
    Result
        A `Predicted` in each row. `details` is the `Prediction`, whose `decision` has the number of
        I/O nodes and the reason.

    Raises
    ------
    IoncastError
        When the logs or the database cannot be read, or nothing was measured on the system.

    Warns
    -----
    UserWarning
        For each limit of the prediction.
    """
    is_plan = isinstance(phases, (pd.DataFrame, Result))
    if is_plan and ran_with is not None:
        raise InputError("phases of a frame are no run", where="ran_with", remedy="give the log")
    found = extraction_of(phases, join, settings)
    asked = _request(
        *(system, nodes, io_nodes, ran_with, engine),
        DecisionRules(tolerance, available, default, min_confidence),
    )
    prediction = ask(_frontend(db), asked, found, is_measured=not is_plan)
    best, decided = prediction.best, prediction.decision
    rows = [predicted_row(point, best.io_nodes, decided.io_nodes) for point in prediction.curve]
    decision, *_ = explain(prediction)
    return Result(
        f"I/O bandwidth of job {prediction.job} on {system}",
        pd.DataFrame(rows, columns=list(Predicted._fields)),
        prediction,
        (f"Decision: {decision}",),
        prediction.warnings,
        partial(_curve, prediction) if rows else f"nothing is predicted: {best.why}",
    )


@interface
def advise(
    logs: Logs,
    system: str,
    *,
    nodes: int | None = None,
    io_nodes: Iterable[int] | None = None,
    ran_with: int | None = None,
    engine: str | None = None,
    buffer_bytes: int | None = None,
    join: Join = "steps",
    settings: ExtractionSettings = DEFAULTS,
    settings_file: Path | None = None,
    db: Path | None = None,
) -> Result:
    """Predict how many seconds following advice would save, as `ioncast advise` does.

    Parameters
    ----------
    logs : str, path, DarshanReport or sequence of them
        The logs of one run.
    system, nodes, io_nodes, ran_with, engine, join, settings, db
        As for `predict`.
    buffer_bytes : int, optional
        Size of larger requests; by default the smallest measured size of at least 1 MiB.
    settings_file : str or path, optional
        As for `check`.

    Returns
    -------
    Result
        An `AdvisedRow` in each row. `details` is the `Advised`: today's prediction, and that of the
        changed run for each piece of advice.

    Raises
    ------
    IoncastError
        As for `predict`, and when the settings cannot be read.
    """
    run = run_of_logs(logs, join, "that the checks look at", ADVICE_MODULES)
    advised = advise_run(
        _frontend(db),
        _request(system, nodes, io_nodes, ran_with, engine),
        run,
        extraction=settings,
        thresholds=site_thresholds(settings_file),
        buffer_bytes=buffer_bytes,
    )
    today = advised.today
    return Result(
        f"Advice for the I/O of job {today.job} on {system}",
        pd.DataFrame(
            [advised_row(today, each) for each in advised.advice], columns=list(AdvisedRow._fields)
        ),
        advised,
        tuple(map(sentence, (today_in_words(today), conclusion(advised)))),
        today.warnings,
        partial(_gains, advised),
    )


@interface
def validate(
    reruns: Path | pd.DataFrame,
    logs: Mapping[str, Phases],
    system: str,
    *,
    nodes: int | None = None,
    engine: str | None = None,
    settings: ExtractionSettings = DEFAULTS,
    db: Path | None = None,
) -> Result:
    """Compare predictions with measured reruns, as `ioncast validate` does.

    Parameters
    ----------
    reruns : str, path or DataFrame
        The reruns, as a CSV or a frame with its columns: application, io_nodes, bandwidth_mib_s
        or log, and, if they are known, repetition and started.
    logs : mapping of str to logs
        The earlier run of each application, see `match`.
    system, nodes, engine, settings, db
        As for `predict`.

    Returns
    -------
    Result
        A `Compared` in each row. `details` has the `Validated` of each application. The figure
        shows each predicted curve beside the reruns and the benchmarks.

    Raises
    ------
    IoncastError
        As for `predict`; also when the reruns cannot be used, or an application has no log.
    """
    found, where = _reruns(reruns, settings)
    applications = list(by_application(found))
    unused = check_logs(applications, logs, where)
    results, said = validate_applications(
        _frontend(db),
        found,
        {name: extraction_of(logs[name], "steps", settings) for name in applications},
        system=system,
        nodes=nodes,
        engine=engine,
    )
    rows = [row for result in results for row in compared_rows(result)]
    return Result(
        f"Predictions and reruns on {system}",
        pd.DataFrame(rows, columns=list(Compared._fields)),
        tuple(results),
        (),
        (*unused, *said),
        partial(_bandwidths, results),
    )


@interface
def import_results(
    files: Path | Sequence[Path],
    system: str | None = None,
    *,
    io_nodes: int | None = None,
    tasks: int | None = None,
    nodes: int | None = None,
    command: str | None = None,
    replace: bool = False,
    db: Path | None = None,
) -> Result:
    """Import results of benchmarks into the database, as `ioncast bench import` does.

    Parameters
    ----------
    files : str, path or sequence of them
        Outputs of IOR, mdtest and fio, ioncast's CSV and Parquet, and exports.
    system : str, optional
        The system of the runs; an export names its systems itself.
    io_nodes, tasks, nodes : int, optional
        Numbers of I/O nodes, processes and compute nodes, if the file lacks them or is wrong.
    command : str, optional
        The IOR command line of the runs, if the file lacks it.
    replace : bool
        Correct an earlier import of the same file.
    db : str or path, optional
        As for `curves`; a new file is made.

    Returns
    -------
    Result
        An `Imported` in each row. `details` has the `StoredFile` of each file.

    Raises
    ------
    IoncastError
        When a file or the database cannot be used. Then no file is imported, except those before a
        file that the database rejects.
    """
    if system is not None:
        check_system_name(system)
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    paths = [fspath(each) for each in files]
    options = ImportOptions(system, io_nodes, tasks, nodes, command)
    read = [(path, read_results(path, options)) for path in paths]
    with ExitStack() as stack:
        # A file that cannot be used must not create a database.
        engine = stack.enter_context(opened_database(location_of(db)))
        stored = {path: store_results(engine, path, file, replace=replace) for path, file in read}
    rows = [
        Imported(
            path,
            each.file_format,
            each.found.measurements,
            each.stored.measurements,
            each.stored.configurations,
            each.stored.set_apart,
            each.replaced,
        )
        for path, each in stored.items()
    ]
    warnings = [
        f"{path}: {warning}"
        for path, file in read
        if isinstance(file, MeasurementsFile)
        for warning in file.warnings
    ]
    return Result(
        f"Results of {counted(len(rows), 'file')}",
        pd.DataFrame(rows, columns=list(Imported._fields)),
        tuple(stored.values()),
        tuple(f"{path}: {result_in_words(each, system)}" for path, each in stored.items()),
        tuple(warnings),
        "an import has no figure",
    )


def _request(
    system: str,
    nodes: int | None,
    io_nodes: Iterable[int] | None,
    ran_with: int | None,
    engine: str | None,
    policy: DecisionRules | None = None,
) -> PredictionRequest:
    numbers = None if io_nodes is None else tuple(sorted(set(io_nodes)))
    for number in numbers or ():
        if not 0 <= number <= MOST_PREDICTED_IO_NODES:
            what = f"{number} is not a number of I/O nodes from 0 to {MOST_PREDICTED_IO_NODES}"
            raise InputError(what, where="io_nodes")
    if nodes is not None and nodes < 1:
        raise InputError(f"{nodes} is not a number of compute nodes", where="nodes")
    return PredictionRequest(system, nodes, numbers, ran_with, engine, policy or DecisionRules())


def _curve(prediction: Prediction) -> Figure:
    best, decision = prediction.best.io_nodes, prediction.decision.io_nodes
    return curve_figure(prediction.curve, best=best, decision=decision)


def _gains(advised: Advised) -> Figure:
    today = name_of_today(is_contradicted=is_contradicted(advised.today))
    return below_each_other(
        (name_of(advice), gain_figure(advised.today.curve, advice.then.curve, today))
        for advice in advised.advice
        if advice.then is not None
    )


def _bandwidths(results: Sequence[Validated]) -> Figure:
    return below_each_other((each.application, bandwidth_figure(each)) for each in results)


def _reruns(reruns: Path | pd.DataFrame, settings: ExtractionSettings) -> tuple[list[Rerun], str]:
    if isinstance(reruns, pd.DataFrame):
        where = "the frame of reruns"
        # A column of whole numbers, of which some are missing, has fractions: 1.0.
        text = reruns.convert_dtypes().to_csv(index=False)
        return reruns_of_text(text, where, settings), where
    path = fspath(reruns)
    return read_reruns(path, settings), path


def _frontend(db: Path | None) -> PredictionContext:
    location = location_of(db)
    return PredictionContext(
        transaction=partial(transaction_on, location),
        choose_engine="choose with engine",
        import_first="import benchmarks with `ioncast.import_results`",
        where=without_password(location or str(default_location())),
    )


def location_of(db: Path | None) -> str | None:
    """The location of the database: the given one, else IONCAST_DB; None is the usual file."""
    return (os.environ.get(DATABASE_VARIABLE) or None) if db is None else fspath(db)
