"""Table 1, operations: the calls of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Layer, possible
from ioncast.insights.tables.scopes import LayerScope, Scope
from ioncast.insights.tables.values import Line, Table
from ioncast_base.kinds import Api
from summario.phases.streams import opens_of

# The calls that all layers count in their own way come from `Layer`; these are the counters, by
# the names of the calls, whose sums the others are.
_CALLS: Mapping[Api, Mapping[str, tuple[str, ...]]] = {
    "POSIX": {
        "seeks": ("SEEKS",),
        "stats": ("STATS",),
        "fsyncs": ("FSYNCS", "FDSYNCS"),
        "mmaps": ("MMAPS",),
        "dups": ("DUPS",),
        "filenos": ("FILENOS",),
        "renames": ("RENAME_SOURCES",),
    },
    "MPIIO": {
        "independent opens": ("INDEP_OPENS",),
        "collective opens": ("COLL_OPENS",),
        "independent reads": ("INDEP_READS",),
        "independent writes": ("INDEP_WRITES",),
        "collective reads": ("COLL_READS",),
        "collective writes": ("COLL_WRITES",),
        "split reads": ("SPLIT_READS",),
        "split writes": ("SPLIT_WRITES",),
        "nonblocking reads": ("NB_READS",),
        "nonblocking writes": ("NB_WRITES",),
        "syncs": ("SYNCS",),
        "views": ("VIEWS",),
    },
    "STDIO": {"seeks": ("SEEKS",), "flushes": ("FLUSHES",), "fdopens": ("FDOPENS",)},
}
_ALWAYS_SHOWN = ("opens", "reads", "writes")
_NOT_COUNTED = "not known: this log's version of Darshan does not count them"


def operations(scope: Scope) -> Table:
    """Count the calls of each layer, with their shares of the layer's calls."""
    lines = [line for layer in scope.layers() for line in _lines(layer)]
    return Table("operations", "Operations", tuple(lines))


def _lines(layer: LayerScope) -> Iterator[Line]:
    calls = {name: layer.sum(values) for name, values in _values(layer.layer).items()}
    whole = np.sum([values.astype(float) for values in calls.values()], axis=0)
    for name, values in calls.items():
        is_rare = name not in _ALWAYS_SHOWN
        yield layer.line(name, values, wholes=whole, of="calls", is_rare=is_rare)
    for name, counters in _CALLS[layer.layer.api].items():
        if not all(map(layer.layer.has, counters)):
            yield layer.line(name, np.full(len(layer.scope), np.nan), notes=_NOT_COUNTED)
    if layer.layer.api == "MPIIO":
        yield layer.line("opens and views with hints", layer.count("HINTS"), is_rare=True)


def _values(layer: Layer) -> dict[str, NDArray[Any]]:
    """Compute the calls of each record."""
    others = {
        name: np.sum([layer.count(counter) for counter in counters], axis=0)
        for name, counters in _CALLS[layer.api].items()
        if all(map(layer.has, counters))
    }
    if layer.api == "MPIIO":
        return others
    opens = possible(opens_of(layer.records, layer.api))
    if layer.api == "STDIO":
        # Darshan counts an fdopen as an open too.
        opens = np.maximum(opens - layer.count("FDOPENS"), 0)
    common = {"opens": opens, "reads": layer.reads.requests, "writes": layer.writes.requests}
    return common | others
