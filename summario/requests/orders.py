"""The order and the aggregators of phases of MPI-IO."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ioncast_base.kinds import APIS, ORDERS, SPATIALITIES
from summario.phases.merge import FilePhases, at_least_one_block, spatialities, take_rows
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, Streams
from summario.requests.aggregators import aggregators_of
from summario.requests.layers import UNKNOWN, Layers, RequestOrders, layers_of, orders_of
from summario.requests.traced import Traced


class Below(NamedTuple):
    """Traits of a phase of MPI-IO by the calls below it (see `Phase`); None if not known."""

    order: str | None = None
    block_requests: float | None = None
    aggregators: int | None = None
    amplification: float | None = None


def below_of(
    file_phases: FilePhases, group: Ints, stack: Stack, streams: Streams, threshold: float
) -> list[Below]:
    """Find the order and the POSIX calls of each group (`group`) of rows."""
    groups = int(group.max()) + 1
    of_mpiio = file_phases.api == APIS.index("MPIIO")
    if not of_mpiio.any():
        return [Below()] * groups
    files = np.unique(file_phases.file_id[of_mpiio])
    layers = layers_of(files, stack, streams)
    if layers is None:
        return [Below()] * groups
    table, group = take_rows(file_phases, of_mpiio), group[of_mpiio]
    place, traced = layers.rows(table.operation, table.file_id), Traced(stack, files)
    collective = spatialities(table, threshold) == SPATIALITIES.index("collective")
    aggregators = np.full(groups, UNKNOWN)
    if collective.any():
        of_collective = take_rows(table, collective), group[collective]
        counted = aggregators_of(*of_collective, layers, stack, traced)
        aggregators[: len(counted)] = counted
    most = np.full(len(layers), UNKNOWN)
    np.maximum.at(most, place[place >= 0], aggregators[group[place >= 0]])
    orders = _with_traced(orders_of(layers, most, threshold), layers, traced, threshold)
    order = np.where(place >= 0, orders.order[place], UNKNOWN)
    # A piece of a row has as many requests in a block as the row.
    of_request = orders.blocks / np.maximum(layers.mpiio.requests, 1)
    blocks = at_least_one_block(table, np.where(place >= 0, of_request[place], np.nan))
    in_posix = layers.posix.bytes / np.maximum(layers.mpiio.bytes, 1)
    moved = table.bytes * np.where((place >= 0) & collective, in_posix[place], np.nan)
    of_groups = zip(
        _main_orders(order, table.bytes, group, groups, threshold),
        _ratios(group, table.requests, blocks, groups),
        aggregators.tolist(),
        _ratios(group, moved, table.bytes, groups),
        strict=True,
    )
    return [
        Below(order_, requests, count if count > 0 else None, amplification)
        for order_, requests, count, amplification in of_groups
    ]


def _ratios(
    group: Ints, dividend: Ints | Floats, divisor: Ints | Floats, groups: int
) -> list[float | None]:
    """Divide the sums of each group; None if one is not known, or nothing."""
    sums = (np.bincount(group, values, minlength=groups) for values in (dividend, divisor))
    pairs = zip(*(each.tolist() for each in sums), strict=True)
    return [above / below if above > 0 and below > 0 else None for above, below in pairs]


def _with_traced(
    orders: RequestOrders, layers: Layers, traced: Traced, threshold: float
) -> RequestOrders:
    """Look up orders that the counters do not tell in the trace.

    A trace has only the first offset of a request that a file view spreads over the file.
    """
    order, blocks = orders.order.copy(), orders.blocks.copy()
    may_be_told = traced.may_have(layers.mpiio.file_id) & ~layers.has_view
    for row in np.flatnonzero((order == UNKNOWN) & may_be_told).tolist():
        found = traced.order(layers.mpiio, row, threshold)
        if found is not None and (found[0] != "random" or not layers.mpiio.collective[row]):
            order[row], blocks[row] = ORDERS.index(found[0]), found[1]
    return RequestOrders(order, blocks)


def _main_orders(
    order: Ints, moved: Ints, group: Ints, groups: int, threshold: float
) -> list[str | None]:
    """Name the order in which each group moves its bytes, but for a small share of them."""
    enough = (1 - threshold) * np.bincount(group, moved, minlength=groups)
    main_orders: list[str | None] = [None] * groups
    for index, name in enumerate(ORDERS):
        in_order = np.bincount(group, np.where(order == index, moved, 0), minlength=groups)
        for each in np.flatnonzero((in_order > 0) & (in_order >= enough)).tolist():
            main_orders[each] = name
    return main_orders
