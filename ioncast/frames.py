"""The Python interface: phases, IOR runs, curves and predictions as pandas frames."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from os import PathLike, fspath
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeAlias, TypeVar

import pandas as pd

from benchdb.measurements.curves import Curve
from benchdb.measurements.curves import curves as read_curves
from benchdb.store.database import default_location, transaction_on, without_password
from benchdb.store.systems import require_system
from ioncast_base.errors import IoncastError, Remedy, as_field
from predictor.curve.asking import PredictionContext, PredictionRequest, ask, read_phases
from predictor.curve.composing import Point
from predictor.curve.prediction import DecisionRules
from predictor.curve.prediction_formats import to_json
from predictor.matching.configurations import configuration, match_warnings
from predictor.validation import result_tables
from predictor.validation.one_application import check_logs
from predictor.validation.reruns import Rerun, by_application, read_reruns, reruns_of_text
from predictor.validation.result_tables import Validated
from predictor.validation.several_applications import validate_applications
from summario.phases.extract import extract_run
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Extraction, Part, Phase
from summario.reading.pydarshan import log_of_report
from summario.runs.hosts import job_nodes, node_warnings
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run

if TYPE_CHECKING:
    from darshan import DarshanReport

_P = ParamSpec("_P")
_T = TypeVar("_T")

Path: TypeAlias = "str | PathLike[str]"
RunLog: TypeAlias = "Path | DarshanReport | Sequence[Path]"
"""One run: a log or a CSV of phases by its path, a PyDarshan report, or the paths of its logs."""


def _in_fields(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Spell parameters in the advice of errors as Python does: `io_nodes`, not `--io-nodes`."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except IoncastError as error:
            if isinstance(error.remedy, Remedy):
                error.remedy = error.remedy.in_words(as_field)
            raise

    return call


PHASE_COLUMNS = tuple(field.name for field in fields(Phase) if field.name != "parts")
"""The columns of `phases`; the parts are the rows of `match`."""


class RequestSize(NamedTuple):
    """A row of `match`: the requests of one size in a phase.

    Attributes
    ----------
    phase : int
        The index of the phase in `phases`.
    operation, api, spatiality, file_access : str
        The kind of I/O of the phase.
    request_bytes : float
        Bytes of a request; a mean if the log does not tell the sizes apart.
    requests, bytes : int
        Number of requests, and their bytes.
    processes, nodes : int or None
        Processes and compute nodes of the IOR run.
    ior : str
        The command line.
    """

    phase: int
    operation: str
    api: str
    spatiality: str
    file_access: str
    request_bytes: float
    requests: int
    bytes: int
    processes: int | None
    nodes: int | None
    ior: str


class MeasuredRow(NamedTuple):
    """A row of `curves`: one repetition of a benchmark.

    Attributes
    ----------
    configuration : int
        The number of the configuration in the database.
    engine : str
        The program that measured, such as "ior".
    operation, api, spatiality, file_access : str
        The kind of I/O.
    request_bytes, bytes_per_process : int
        Bytes of a request, and of all requests of a process.
    processes, nodes : int or None
        Processes and compute nodes.
    ior : str
        The command line of the configuration.
    io_nodes, repetition : int
        Number of I/O nodes, and number of the repetition, from 0.
    bandwidth_mib_s : float
        Bandwidth.
    """

    configuration: int
    engine: str
    operation: str
    api: str
    spatiality: str
    file_access: str
    request_bytes: int
    bytes_per_process: int
    processes: int | None
    nodes: int | None
    ior: str
    io_nodes: int
    repetition: int
    bandwidth_mib_s: float


class Predicted(NamedTuple):
    """A row of `predict`: the job with one number of I/O nodes.

    Attributes
    ----------
    io_nodes : int
        Number of I/O nodes; 0 is direct access.
    bandwidth_mib_s : float
        Expected bandwidth.
    p10_mib_s, median_mib_s, p90_mib_s : float
        Four of five runs should lie between p10 and p90.
    time_seconds : float
        Expected time of the job's I/O.
    basis : str
        See docs/predicting.md.
    is_best, is_decision : bool
        Whether its expected bandwidth is the highest, and whether the job gets it.
    """

    io_nodes: int
    bandwidth_mib_s: float
    p10_mib_s: float
    median_mib_s: float
    p90_mib_s: float
    time_seconds: float
    basis: str
    is_best: bool
    is_decision: bool


class Compared(NamedTuple):
    """A row of `validate`: an application with one number of I/O nodes.

    Attributes
    ----------
    application : str
        The application.
    io_nodes, reruns : int
        Number of I/O nodes, and number of reruns with them.
    measured_mib_s : float or None
        Mean bandwidth of the reruns.
    predicted_mib_s, p10_mib_s, p90_mib_s : float or None
        The prediction.
    error, noise_floor : float or None
        Mean of |Bw - Ba| / Ba over the reruns (Inria RR-9366, §7): of the prediction, and if the
        reruns predict each other.
    """

    application: str
    io_nodes: int
    reruns: int
    measured_mib_s: float | None
    predicted_mib_s: float | None
    p10_mib_s: float | None
    p90_mib_s: float | None
    error: float | None
    noise_floor: float | None


@_in_fields
def phases(
    log: RunLog, *, join: Join = "steps", settings: ExtractionSettings = DEFAULTS
) -> pd.DataFrame:
    """Extract the I/O phases of a run, as `ioncast phases` does.

    Parameters
    ----------
    log : str, path, DarshanReport or sequence of paths
        A Darshan log, also in gzip; a report of PyDarshan; or the logs of one run, which are
        joined.
    join : {"steps", "job"}
        The rule for several logs: those of a job that overlap in time, or all of a job.
    settings : ExtractionSettings
        The rules for phases.

    Returns
    -------
    DataFrame
        A row for each phase, by start, with the attributes of `summario.phases.values.Phase`.
        Times are seconds since the start of the job. Missing values are not known.

    Raises
    ------
    IoncastError
        When a log cannot be read; or the logs are not of one run.

    Warns
    -----
    UserWarning
        For each limit of the log.

    Examples
    --------
    >>> import ioncast
    >>> found = ioncast.phases("experiments/data/testbed/logs/hacc-io-ionodes0.darshan")
    >>> found[["operation", "api", "bytes", "n_files"]].to_dict("records")
    [{'operation': 'write', 'api': 'POSIX', 'bytes': 463453184, 'n_files': 16}]
    """
    extraction = _extraction(log, join, settings)
    _warn(extraction.warnings)
    rows = [[getattr(phase, name) for name in PHASE_COLUMNS] for phase in extraction.phases]
    return pd.DataFrame(rows, columns=list(PHASE_COLUMNS))


@_in_fields
def match(
    log: RunLog,
    *,
    nodes: int | None = None,
    join: Join = "steps",
    settings: ExtractionSettings = DEFAULTS,
) -> pd.DataFrame:
    """Find the IOR run that does the same I/O as each part of each phase.

    Parameters
    ----------
    log, join, settings
        As for `phases`.
    nodes : int, optional
        Compute nodes of the job; by default those that the log names.

    Returns
    -------
    DataFrame
        A `RequestSize` in each row.

    Raises
    ------
    IoncastError
        As for `phases`.

    Examples
    --------
    >>> import ioncast
    >>> found = ioncast.match("experiments/data/testbed/logs/periodic-ionodes0.darshan")
    >>> sorted(set(found["api"])), sorted(set(found["operation"]))
    (['POSIX'], ['write'])
    """
    found = _extraction(log, join, settings)
    of_job = job_nodes(nodes, found.nodes)
    number = of_job and of_job.number
    warnings = (*found.warnings, *node_warnings(nodes, found.nodes))
    _warn((*warnings, *match_warnings(found.phases)))
    rows = [
        _request_size(index, phase, part, number)
        for index, phase in enumerate(found.phases)
        for part in phase.parts
    ]
    return pd.DataFrame(rows, columns=list(RequestSize._fields))


@_in_fields
def curves(system: str, *, engine: str | None = None, database: Path | None = None) -> pd.DataFrame:
    """Read the measured bandwidths of a system, which predictions rest on.

    Parameters
    ----------
    system : str
        The system.
    engine : str, optional
        Only measurements of this program, such as "ior"; by default those of all.
    database : str or path, optional
        The database: an SQLite file or a SQLAlchemy URL; by default that of the command.

    Returns
    -------
    DataFrame
        A `MeasuredRow` in each row. Measurements that are set apart are left out.

    Raises
    ------
    IoncastError
        When the database cannot be read or does not know the system.
    """
    with transaction_on(_location(database)) as connection:
        require_system(connection, system)
        found = read_curves(connection, system)
    rows = [row for curve in found if engine in {None, curve.engine} for row in _measured(curve)]
    return pd.DataFrame(rows, columns=list(MeasuredRow._fields))


@_in_fields
def predict(
    log: RunLog,
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
    database: Path | None = None,
) -> pd.DataFrame:
    """Predict a job's bandwidth with each number of I/O nodes, and decide on one.

    Parameters
    ----------
    log, join, settings
        As for `phases`: an earlier run of the same application.
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
    database : str or path, optional
        As for `curves`.

    Returns
    -------
    DataFrame
        A `Predicted` in each row. `attrs` is the record that `ioncast predict --format json`
        prints: the decision, the phases and their matches.

    Raises
    ------
    IoncastError
        When the log or the database cannot be read, or nothing was measured on the system.

    Warns
    -----
    UserWarning
        For each limit of the prediction.
    """
    found = _extraction(log, join, settings)
    asked = PredictionRequest(
        system=system,
        nodes=nodes,
        io_nodes=None if io_nodes is None else tuple(sorted(set(io_nodes))),
        ran_with=ran_with,
        engine=engine,
        policy=DecisionRules(tolerance, available, default, min_confidence),
    )
    prediction = ask(_frontend(database), asked, found)
    _warn(prediction.warnings)
    decided = prediction.decision.io_nodes
    rows = [_predicted(point, prediction.best.io_nodes, decided) for point in prediction.curve]
    frame = pd.DataFrame(rows, columns=list(Predicted._fields))
    frame.attrs.update(to_json(prediction))
    return frame


@_in_fields
def validate(
    reruns: Path | pd.DataFrame,
    logs: Mapping[str, RunLog],
    system: str,
    *,
    nodes: int | None = None,
    engine: str | None = None,
    settings: ExtractionSettings = DEFAULTS,
    database: Path | None = None,
) -> pd.DataFrame:
    """Compare predictions with measured reruns, as `ioncast validate` does.

    Parameters
    ----------
    reruns : str, path or DataFrame
        The reruns, as a CSV or a frame with its columns: application, io_nodes, bandwidth_mib_s
        or log, and, if they are known, repetition and started.
    logs : mapping of str to log
        The earlier run of each application, see `phases`.
    system, nodes, engine, settings, database
        As for `predict`.

    Returns
    -------
    DataFrame
        A `Compared` in each row. `attrs` is the record that `ioncast validate --format json`
        prints: the choices, and all applications together.

    Raises
    ------
    IoncastError
        As for `predict`; also when the reruns cannot be used, or an application has no log.
    """
    found, where = _reruns(reruns, settings)
    applications = list(by_application(found))
    unused = check_logs(applications, logs, where)
    results, said = validate_applications(
        _frontend(database),
        found,
        {name: _extraction(logs[name], "steps", settings) for name in applications},
        system=system,
        nodes=nodes,
        engine=engine,
    )
    _warn((*unused, *said))
    rows = [row for result in results for row in _compared(result)]
    frame = pd.DataFrame(rows, columns=list(Compared._fields))
    frame.attrs.update(result_tables.to_json(results))
    return frame


def _request_size(index: int, phase: Phase, part: Part, nodes: int | None) -> RequestSize:
    config = configuration(phase, part, nodes)
    return RequestSize(
        index,
        *phase.kind,
        part.request_bytes,
        part.requests,
        part.bytes,
        config.tasks,
        config.nodes,
        config.command_line(launcher=True),
    )


def _measured(curve: Curve) -> Iterator[MeasuredRow]:
    config = curve.config
    for io_nodes, bandwidths in curve.bandwidths_mib_s.items():
        for repetition, bandwidth in enumerate(bandwidths):
            yield MeasuredRow(
                curve.id,
                curve.engine,
                *config.kind,
                config.transfer_size,
                config.bytes_per_process,
                config.tasks,
                config.nodes,
                config.command_line(launcher=True),
                io_nodes,
                repetition,
                bandwidth,
            )


def _predicted(point: Point, best: int | None, decided: int | None) -> Predicted:
    bandwidth = point.bandwidth_mib_s
    return Predicted(
        point.io_nodes,
        bandwidth.mean,
        bandwidth.p10,
        bandwidth.median,
        bandwidth.p90,
        point.time_s,
        point.basis,
        point.io_nodes == best,
        point.io_nodes == decided,
    )


def _compared(one: Validated) -> Iterator[Compared]:
    for io_nodes in sorted({*one.expected, *one.reruns}):
        reruns, expected = one.reruns.get(io_nodes, ()), one.expected.get(io_nodes)
        yield Compared(
            one.application,
            io_nodes,
            len(reruns),
            fmean(reruns) if reruns else None,
            expected.mean if expected else None,
            expected.p10 if expected else None,
            expected.p90 if expected else None,
            _mean(one.prediction.run_errors.get(io_nodes, ())),
            _mean(one.floor.run_errors.get(io_nodes, ())),
        )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _extraction(log: RunLog, join: Join, settings: ExtractionSettings) -> Extraction:
    if isinstance(log, (str, PathLike)):
        return read_phases([fspath(log)], settings, join)
    if isinstance(log, Sequence):
        return read_phases([fspath(each) for each in log], settings, join)
    return extract_run(Run((log_of_report(log),)), settings)


def _reruns(reruns: Path | pd.DataFrame, settings: ExtractionSettings) -> tuple[list[Rerun], str]:
    if isinstance(reruns, pd.DataFrame):
        where = "the frame of reruns"
        # A column of whole numbers, of which some are missing, has fractions: 1.0.
        text = reruns.convert_dtypes().to_csv(index=False)
        return reruns_of_text(text, where, settings), where
    path = fspath(reruns)
    return read_reruns(path, settings), path


def _frontend(database: Path | None) -> PredictionContext:
    location = _location(database)
    return PredictionContext(
        transaction=partial(transaction_on, location),
        choose_engine="choose with engine",
        import_first="import benchmarks with `ioncast bench import`",
        where=without_password(location or str(default_location())),
    )


def _location(database: Path | None) -> str | None:
    return None if database is None else fspath(database)


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        # The line of the caller, behind the interface's function and its wrapper.
        warnings.warn(sentence, stacklevel=4)
