"""Table 3, sizes of requests and strides (Carns et al. 2009, Tables III, IVa, IVb and VII)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ioncast.insights.facts.values import Ints, possible
from ioncast.insights.tables.scopes import LayerScope, Scope
from ioncast.insights.tables.values import Line, Table
from summario.phases.streams import changes, row_of_counters

# Darshan keeps so many for each record, so sums over records are lower bounds.
_KEPT = 4


def sizes(scope: Scope) -> Table:
    """List the four most common sizes and strides of each layer, of reads and writes together."""
    lines: list[Line] = []
    for layer in scope.layers():
        if layer.layer.api != "STDIO":
            lines += _common(layer, "requests of {} bytes", "ACCESS{}_ACCESS", "ACCESS{}_COUNT")
        if layer.layer.api == "POSIX":
            lines += _common(layer, "strides of {} bytes", "STRIDE{}_STRIDE", "STRIDE{}_COUNT")
    return Table("sizes", "Most common request sizes and strides", tuple(lines))


def _common(layer: LayerScope, name: str, value: str, count: str) -> Iterator[Line]:
    records, api = layer.layer.records, layer.layer.api
    values, counts = most_common(
        row_of_counters(records, f"{api}_{value.format(1)}", _KEPT),
        possible(row_of_counters(records, f"{api}_{count.format(1)}", _KEPT)),
        layer.groups,
        len(layer.scope),
    )
    whole = layer.sum(layer.layer.reads.requests + layer.layer.writes.requests)
    for place in range(_KEPT):
        yield layer.line(
            name,
            counts[:, place],
            among=counts[:, place] > 0,
            wholes=whole,
            of="requests",
            notes="at least",
            labels=values[:, place],
        )


def most_common(values: Ints, counts: Ints, groups: Ints, number: int) -> tuple[Ints, Ints]:
    """Find the four most common values of each group, most common first; the largest of equals.

    A record has four values and counts (0: an empty slot), and a group (-1: it does not count).
    """
    is_value = (values > 0) & (counts > 0) & (groups >= 0)[:, None]
    group = np.broadcast_to(groups[:, None], values.shape)[is_value]
    group, value, count = _summed(group, values[is_value], counts[is_value])
    order = np.lexsort((-value, -count, group))
    group, value, count = group[order], value[order], count[order]
    place = np.arange(len(group)) - np.searchsorted(group, group)
    top = place < _KEPT
    found, times = np.zeros((2, number, _KEPT), np.int64)
    found[group[top], place[top]] = value[top]
    times[group[top], place[top]] = count[top]
    return found, times


def _summed(group: Ints, value: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Add up the counts of the same value in the same group."""
    if not len(group):
        return group, value, count
    order = np.lexsort((value, group))
    group, value, count = group[order], value[order], count[order]
    [first] = np.nonzero(changes(group, value))
    return group[first], value[first], np.add.reduceat(count, first)
