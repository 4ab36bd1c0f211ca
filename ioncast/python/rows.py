"""The rows of frames about a system: the names of columns have units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from benchdb.measurements.curves import Curve
from predictor.curve.composing import Point
from predictor.curve.prediction import Prediction
from predictor.matching.configurations import configuration
from predictor.validation.result_tables import Validated
from predictor.what_if.advice_words import name_of
from predictor.what_if.advice_words import sentence as advice_sentence
from predictor.what_if.advising import AdviceGain
from summario.phases.values import Part, Phase


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


class AdvisedRow(NamedTuple):
    """A row of `advise`: a piece of advice, or two together.

    Attributes
    ----------
    advice : str
        Its name.
    codes : str
        The checks that propose it.
    verdict : str
        "faster", "unsure", "slower" or "not known".
    saved_seconds, saved_low_seconds, saved_high_seconds : float or None
        Seconds that a run saves: expected, and the ends of the interval.
    rests_on : str or None
        The weakest match that the answer rests on.
    sentence : str
        The same in words.
    """

    advice: str
    codes: str
    verdict: str
    saved_seconds: float | None
    saved_low_seconds: float | None
    saved_high_seconds: float | None
    rests_on: str | None
    sentence: str


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


class Imported(NamedTuple):
    """A row of `import_results`: a file.

    Attributes
    ----------
    file, file_format : str
        Its path, and its format.
    found, measurements, configurations : int
        Measurements in the file; those that the database did not have yet, and their
        configurations.
    set_apart, replaced : int
        New measurements that are not used, and older ones that were replaced.
    """

    file: str
    file_format: str
    found: int
    measurements: int
    configurations: int
    set_apart: int
    replaced: int


def request_size(index: int, phase: Phase, part: Part, nodes: int | None) -> RequestSize:
    """Make the row of a part of a phase."""
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


def measured_rows(curve: Curve) -> Iterator[MeasuredRow]:
    """Yield the rows of a curve."""
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


def predicted_row(point: Point, best: int | None, decided: int | None) -> Predicted:
    """Make the row of a number of I/O nodes, beside the best one and the decision."""
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


def advised_row(today: Prediction, advice: AdviceGain) -> AdvisedRow:
    """Make the row of advice on today's run."""
    saved = advice.saved_seconds
    return AdvisedRow(
        name_of(advice),
        " ".join(advice.codes),
        advice.verdict,
        None if saved is None else saved.expected,
        None if saved is None else saved.p10,
        None if saved is None else saved.p90,
        advice.matched,
        advice_sentence(today, advice),
    )


def compared_rows(one: Validated) -> Iterator[Compared]:
    """Yield the rows of an application."""
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
