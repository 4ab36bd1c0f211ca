"""Times that applications need without others: of runs alone, of their history, or predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ioncast.warehouse.coverage import jobs_of
from ioncast.warehouse.engine import Ask
from ioncast.warehouse.interference import TimeAlone, server_uses
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.usual_values import FEWEST_JOBS, LIKE_BYTES

if TYPE_CHECKING:
    from predictor.curve.prediction import Prediction

Row = Mapping[str, Any]
# Benchmarks must tell this part of the bytes.
_MOST_BYTES = 0.9


def usual_time(ask: Ask, job: Row, basis: Literal["alone", "history"]) -> TimeAlone | None:
    """Find the median time of other jobs of the program, with as many processes and bytes.

    Parameters
    ----------
    ask : callable
        Asks the logs of runs alone, of which one is enough, or a store, which must have 5 other
        jobs of the user on the system ("history").
    job : mapping
        A row of the query `jobs-together`.
    """
    is_history = basis == "history"
    needed = ("program", "processes", *(("user_id",) if is_history else ()))
    if any(job[name] is None for name in needed):
        return None
    variant = {"program": job["program"], "processes": job["processes"]}
    user = {"system": job["system"], "user": job["user_id"]} if is_history else {}
    query = query_of("variant-runs")
    # Logs of one job saw the same weather, so they count once.
    alike: dict[Any, list[Row]] = {}

    def unit(row: Row) -> Any:
        return row["job_id"] if is_history and row["job_id"] is not None else row["log"]

    for row in ask(query, {**query.values({}), **variant, **user}).to_pylist():
        least, most = sorted((job["moved_bytes"] or 0, row["moved_bytes"] or 0))
        is_other = unit(row) != unit(job)
        if is_other and most <= LIKE_BYTES * least and (row["run_seconds"] or 0) > 0:
            alike.setdefault(unit(row), []).append(row)
    if len(alike) < (FEWEST_JOBS if is_history else 1):
        return None
    busy_seconds = []
    for [row] in () if is_history else alike.values():
        uses = ask(query_of("server-uses"), {"log": row["log"]})
        found = server_uses([{**row, "start_us": 0, "system": None}], uses)
        busy_seconds += [max(use.busy_seconds for use in found)] if found else []
    usual_s = median(median(row["run_seconds"] for row in rows) for rows in alike.values())
    return TimeAlone(basis, usual_s, len(alike), median(busy_seconds) if busy_seconds else None)


def predicted_time(
    ask: Ask, job: Row, location: str, system: str, io_nodes: int
) -> TimeAlone | None:
    """Predict the time of a job; its time outside of I/O stays as it was.

    `location` is that of the benchmarks, and `ask` asks the tables that have the job's phases.
    """
    for predicted in _predictions(ask, job["log"], location, system, io_nodes):
        own, expected = predicted.own_run, predicted.uncorrected
        if own is not None and expected is not None and job["run_seconds"] is not None:
            lost_s = expected.total_mib / own.bandwidth_mib_s - predicted.curve[0].time_s
            return TimeAlone("prediction", job["run_seconds"] - lost_s, 0)
    return None


def predicted_bandwidth(
    ask: Ask, log: str, location: str, system: str, io_nodes: int
) -> tuple[float, float, float] | None:
    """Predict the MiB/s (p10, median and p90) of runs of a log's I/O, which its own run is not in.

    None if benchmarks tell less than nine tenths of its bytes.
    """
    for predicted in _predictions(ask, log, location, system, io_nodes):
        known = predicted.uncorrected
        moved_mib = sum(each.phase.bytes for each in predicted.phases) / (1 << 20)
        if known is not None and known.total_mib >= _MOST_BYTES * moved_mib:
            runs = known.runs_mib_s[:, known.io_nodes.index(io_nodes)]
            p10, middle, p90 = np.quantile(runs, (0.1, 0.5, 0.9)).tolist()
            return p10, middle, p90
    return None


def _predictions(
    ask: Ask, log: str, location: str, system: str, io_nodes: int
) -> Iterator[Prediction]:
    # It takes as long to import as a few logs take to read.
    from predictor.commands import command_line  # noqa: PLC0415
    from predictor.curve import asking  # noqa: PLC0415

    query = query_of("phases")
    rows = ask(query, query.values({"log": log})).to_pylist()
    request = asking.PredictionRequest(system, io_nodes=(io_nodes,), ran_with=io_nodes)
    for phases in jobs_of(rows):
        yield asking.ask(command_line(location), request, phases)
