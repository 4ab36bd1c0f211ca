"""The I/O of jobs that ran: their logs in a store, and the curves of their applications."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ioncast.warehouse.coverage import jobs_of
from ior_configs import IorConfig
from predictor.curve.asking import configurations_of
from predictor.curve.prediction import EarlierRun, Prediction, predict
from predictor.matching.same_application import variants
from predictor.model.system_model import SystemModel

Row = Mapping[str, Any]
_MIB = 1 << 20
# As many runs correct a prediction in the service.
_MOST_RUNS = 50
_DAY_US = 86_400e6
_APPLICATION = ("user_id", "program", "processes", "compute_nodes")
_KIND = ("api", "operation", "spatiality", "file_access", "fsync", "request_order")


@dataclass(frozen=True, eq=False)
class ApplicationCurve:
    """The bandwidth that runs with the same I/O are expected to get, for n numbers of I/O nodes.

    `mib_s` has the shape (n,), `draws_mib_s` the shape (draws, n): the doubt about it. A decision
    rests on it only with `is_sure`.
    """

    io_nodes: tuple[int, ...]
    mib_s: NDArray[np.float64]
    draws_mib_s: NDArray[np.float64]
    is_sure: bool


@dataclass(frozen=True)
class LoggedIo:
    """The I/O of a log: MiB, and the seconds that its phases took together.

    `curve` is None if less than half of the bytes have a benchmark, or none with I/O nodes.
    """

    job_id: int | None
    program: str | None
    start_us: int | None
    run_seconds: float | None
    mib: float
    io_seconds: float | None
    curve: ApplicationCurve | None


def logged_io(
    jobs: pa.Table,
    phases: pa.Table,
    knowledge_of: Callable[[Sequence[IorConfig]], SystemModel],
    system: str,
    ran_with: int | Mapping[str, int],
    progress: Callable[[int], object] = lambda logs: None,
) -> list[LoggedIo]:
    """Predict each application once: by the phases of its newest run, corrected by all its runs.

    Parameters
    ----------
    jobs, phases : pyarrow.Table
        Rows of the queries `logged-jobs` and `phases`, of one system.
    ran_with : int or mapping of str to int
        The number of I/O nodes that all runs had, or those of some runs by log; then the other runs
        correct no prediction.
    progress : callable
        Called now and then with the number of logs that were predicted since the last call.
    """
    patterns, moved = _patterns(phases)
    if not isinstance(ran_with, Mapping):
        ran_with = dict.fromkeys(jobs["log"].to_pylist(), ran_with)
    alike: dict[tuple[Any, ...], dict[Any, list[Row]]] = defaultdict(lambda: defaultdict(list))
    # The newest logs come first.
    for row in jobs.to_pylist():
        application = tuple(row[name] for name in _APPLICATION)
        alike[application][patterns.get(row["log"])].append(row)
    newest = [rows[0]["log"] for groups in alike.values() for rows in groups.values()]
    chosen = phases.filter(pc.is_in(phases["log"], pa.array(newest, phases["log"].type)))
    logs = list(dict.fromkeys(chosen["log"].to_pylist()))
    extractions = dict(zip(logs, jobs_of(chosen.to_pylist()), strict=True))
    wanted = {
        each
        for found in extractions.values()
        for each in configurations_of(found.phases, found.nodes and found.nodes.number)
    }
    knowledge = knowledge_of(tuple(wanted))
    found = []
    for groups in alike.values():
        known = [rows for rows in groups.values() if rows[0]["log"] in extractions]
        for variant in variants([extractions[rows[0]["log"]].phases for rows in known]):
            runs = [row for place in variant.runs for row in known[place]]
            first = extractions[known[variant.runs[0]][0]["log"]]
            predicted = predict(
                first.phases,
                knowledge,
                system=system,
                nodes=first.nodes and first.nodes.number,
                earlier=_earlier(runs, ran_with),
            )
            curve = _curve(predicted)
            found += [_of_log(row, moved[row["log"]], curve) for row in runs]
            progress(len(runs))
        without = [row for rows in groups.values() for row in rows if row["log"] not in moved]
        found += [_of_log(row, 0, None) for row in without]
        progress(len(without))
    return found


def _patterns(phases: pa.Table) -> tuple[dict[str, tuple[Any, ...]], dict[str, int]]:
    """Describe the I/O of each log, with sizes within a factor of 1.4, and add up its bytes.

    Logs with the same description are predicted alike, which saves the time to look at each.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    moved: dict[str, int] = defaultdict(int)
    kinds = zip(*(phases[name].to_pylist() for name in _KIND), strict=True)
    sizes = (phases[name].to_pylist() for name in ("log", "bytes", "requests", "mode_processes"))
    for kind, log, bytes_, requests, processes in zip(kinds, *sizes, strict=True):
        request_bytes = max(bytes_, 1) / max(requests or 1, 1)
        found[log].append((kind, _size(bytes_), _size(request_bytes), processes))
        moved[log] += bytes_
    return {log: tuple(found[log]) for log in found}, moved


def _size(bytes_: float) -> int:
    return round(2 * math.log2(max(bytes_, 1)))


def _earlier(runs: Sequence[Row], ran_with: Mapping[str, int]) -> list[EarlierRun]:
    """List the bandwidths of the newest runs, the oldest first."""
    known = [row for row in runs if row["bandwidth_mib_s"] and row["log"] in ran_with]
    dated = [row for row in known if row["start_us"] is not None]
    dated.sort(key=lambda row: row["start_us"])
    return [
        EarlierRun(ran_with[row["log"]], row["bandwidth_mib_s"], day=row["start_us"] / _DAY_US)
        for row in dated[-_MOST_RUNS:]
    ]


def _curve(prediction: Prediction) -> ApplicationCurve | None:
    choice = prediction.choice
    if choice.unknown is not None or not any(point.io_nodes for point in choice.curve):
        return None
    return ApplicationCurve(
        tuple(point.io_nodes for point in choice.curve),
        np.array([point.bandwidth_mib_s.mean for point in choice.curve]),
        choice.expected_mib_s,
        is_sure=prediction.decision.source == "model",
    )


def _of_log(row: Row, moved: int, curve: ApplicationCurve | None) -> LoggedIo:
    speed, mib = row["bandwidth_mib_s"], moved / _MIB
    return LoggedIo(
        **{name: row[name] for name in ("job_id", "program", "start_us", "run_seconds")},
        mib=mib,
        io_seconds=0.0 if not moved else mib / speed if speed else None,
        curve=curve,
    )
