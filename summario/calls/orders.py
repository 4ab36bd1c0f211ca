"""The order and the aggregators of phases of MPI-IO."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ioncast_base.kinds import APIS, ORDERS, SPATIALITIES
from summario.calls.aggregators import aggregators_of
from summario.calls.layers import UNKNOWN, Layers, layers_of, orders_of
from summario.calls.traced import Traced
from summario.phases.merge import FilePhases, spatialities, take_rows
from summario.phases.streams import Ints, Streams
from summario.runs.logs_of_run import Run


class Below(NamedTuple):
    """The order and the aggregators of a phase of MPI-IO; None if they are not known."""

    order: str | None = None
    aggregators: int | None = None


def below_of(
    file_phases: FilePhases, group: Ints, run: Run, streams: Streams, threshold: float
) -> list[Below]:
    """Find the order and the aggregators of each group of rows.

    Parameters
    ----------
    file_phases : FilePhases
        Rows of all apis; some may be pieces of a file.
    group : ndarray of int64
        The group of each row.
    run : Run
        The run of the rows.
    streams : Streams
        All streams of the run.
    threshold : float
        The share of requests that may be out of order, and of bytes in another order.
    """
    groups = int(group.max()) + 1
    of_mpiio = file_phases.api == APIS.index("MPIIO")
    if not of_mpiio.any():
        return [Below()] * groups
    files = np.unique(file_phases.file_id[of_mpiio])
    layers = layers_of(files, run, streams)
    if layers is None:
        return [Below()] * groups
    table, group = take_rows(file_phases, of_mpiio), group[of_mpiio]
    place, traced = layers.rows(table.operation, table.file_id), Traced(run, files)
    collective = spatialities(table, threshold) == SPATIALITIES.index("collective")
    aggregators = np.full(groups, UNKNOWN)
    if collective.any():
        of_collective = take_rows(table, collective), group[collective]
        counted = aggregators_of(*of_collective, layers, run, traced)
        aggregators[: len(counted)] = counted
    most = np.full(len(layers), UNKNOWN)
    np.maximum.at(most, place[place >= 0], aggregators[group[place >= 0]])
    order = _with_traced(orders_of(layers, most, threshold), layers, traced, threshold)
    order = np.where(place >= 0, order[place], UNKNOWN)
    found = _main_orders(order, table.bytes, group, groups, threshold)
    return [
        Below(name, count if count > 0 else None)
        for name, count in zip(found, aggregators.tolist(), strict=True)
    ]


def _with_traced(order: Ints, layers: Layers, traced: Traced, threshold: float) -> Ints:
    """Look up orders that the counters do not tell in the trace.

    A trace has only the first offset of a request that a file view spreads over the file.
    """
    order = order.copy()
    for row in np.flatnonzero((order == UNKNOWN) & ~layers.has_view).tolist():
        found = traced.order(layers.mpiio, row, threshold)
        if found is not None and (found != "random" or not layers.mpiio.collective[row]):
            order[row] = ORDERS.index(found)
    return order


def _main_orders(
    order: Ints, moved: Ints, group: Ints, groups: int, threshold: float
) -> list[str | None]:
    """Name the order in which each group moves its bytes, but for a small share of them."""
    enough = (1 - threshold) * np.bincount(group, moved, minlength=groups)
    found: list[str | None] = [None] * groups
    for index, name in enumerate(ORDERS):
        in_order = np.bincount(group, np.where(order == index, moved, 0), minlength=groups)
        for each in np.flatnonzero((in_order > 0) & (in_order >= enough)).tolist():
            found[each] = name
    return found
