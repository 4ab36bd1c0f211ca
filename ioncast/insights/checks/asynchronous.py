"""The time of blocking I/O that would fit into the pauses after it."""

from __future__ import annotations

import numpy as np

from ioncast.insights.facts.process_times import ProcessTimes
from ioncast.insights.facts.values import Facts, Floats
from ioncast_base.kinds import OPERATIONS, Operation
from summario.requests.trace_phases import TracePhases


def hidden_seconds(
    facts: Facts, times: ProcessTimes, operation: Operation, traced: TracePhases | None
) -> float:
    """Add up the time of an operation of MPI-IO that a program could spend with other work.

    Of each phase it is no more than the pause after it, so nothing of the last phase. Without a
    trace, files that are used at the same time are a phase.
    """
    number = OPERATIONS.index(operation)
    if traced is not None and len(traced):
        is_used = (traced.first_operation <= number) & (number <= traced.last_operation)
        busy, pauses = traced.durations_seconds[:-1], traced.pauses_seconds
        return float(np.minimum(busy, pauses)[is_used[:-1]].sum())
    start, end, own = _windows(facts, times, operation)
    if not len(start):
        return 0.0
    order = np.argsort(start, kind="stable")
    latest = np.maximum.accumulate(end[order])
    gaps = start[order][1:] - latest[:-1]
    phase = np.concatenate([[0], np.cumsum(gaps > 0)])
    of_phases = np.bincount(phase, own[order])
    return float(np.minimum(of_phases[:-1], gaps[gaps > 0]).sum())


def _windows(
    facts: Facts, times: ProcessTimes, operation: Operation
) -> tuple[Floats, Floats, Floats]:
    """The first start and last end of each operation on each file, and the time that counts."""
    columns: list[tuple[Floats, Floats, Floats]] = [(np.zeros(0), np.zeros(0), np.zeros(0))]
    for api, layer in facts.layers.items():
        rows = facts.files.highest(layer)
        for number, name in enumerate(OPERATIONS):
            start = layer.seconds(f"F_{name.upper()}_START_TIMESTAMP")
            end = layer.seconds(f"F_{name.upper()}_END_TIMESTAMP")
            is_used = rows & (layer.of(name).requests > 0) & (end >= start) & (end > 0)
            first = layer.of_files(np.where(is_used, start, np.inf), np.minimum)
            last = layer.of_files(np.where(is_used, end, -np.inf), np.maximum)
            own = times.layers[api][number, layer.used_files]
            known = last >= first
            counts = api == "MPIIO" and name == operation
            columns.append((first[known], last[known], own[known] * counts))
    start, end, own = (np.concatenate(each) for each in zip(*columns, strict=True))
    return start, end, own
