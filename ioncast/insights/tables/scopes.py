"""`Scope`: a table's groups, all files or each file; `LayerScope`: a layer's records in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.values import Bools, Facts, Floats, Ints, Layer, total
from ioncast.insights.tables.values import Line
from ioncast_base.kinds import APIS, Api
from ioncast_base.limits import MOST_BYTES


@dataclass(frozen=True)
class Scope:
    """Groups of a run's files: `files` (ascending rows of `facts.files`), or each if `by_file`."""

    facts: Facts
    files: Ints
    by_file: bool = False

    def __len__(self) -> int:
        return len(self.files) if self.by_file else 1

    @cached_property
    def has_all(self) -> bool:
        """Whether all files of the run count."""
        return len(self.files) == len(self.facts.files)

    @cached_property
    def group_of_file(self) -> Ints:
        """The group of each of the run's files; -1 for files that do not count."""
        groups = np.full(len(self.facts.files), -1)
        groups[self.files] = np.arange(len(self.files)) if self.by_file else 0
        return groups

    def layers(self) -> Iterator[LayerScope]:
        """Yield the layers with records of files that count, in the order of `APIS`."""
        for api in APIS:
            layer = self.layer(api)
            if layer is not None:
                yield layer

    def layer(self, api: Api) -> LayerScope | None:
        """Look up a layer; None without records of files that count."""
        layer = self.facts.layers.get(api)
        if layer is None or not (self.group_of_file[layer.file] >= 0).any():
            return None
        return LayerScope(self, layer)


@dataclass(frozen=True)
class LayerScope:
    """The records of a layer in groups of files."""

    scope: Scope
    layer: Layer

    @cached_property
    def groups(self) -> Ints:
        """The group of each record; -1 for records that do not count."""
        return self.scope.group_of_file[self.layer.file]

    @cached_property
    def present(self) -> Bools:
        """Tell which groups have records of the layer."""
        found = np.zeros(len(self.scope), bool)
        found[self.groups[self.groups >= 0]] = True
        return found

    def count(self, counter: str) -> NDArray[Any]:
        """Add up a counter in each group."""
        return self.sum(self.layer.count(counter))

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up values of the records in each group."""
        scope, layer = self.scope, self.layer
        if not scope.by_file:
            return _total(values if scope.has_all else values[self.groups >= 0])
        groups = scope.group_of_file[layer.used_files]
        with np.errstate(over="ignore"):
            sums = layer.of_files(_summable(values))
        found = np.zeros(len(scope), sums.dtype)
        found[groups[groups >= 0]] = sums[groups >= 0]
        return found

    def largest(self, values: Floats) -> Floats:
        """Find the largest value of the records in each group, at least 0."""
        found = np.zeros(len(self.scope))
        np.maximum.at(found, self.groups[self.groups >= 0], values[self.groups >= 0])
        return found

    def line(
        self, name: str, values: NDArray[Any], *, among: Bools | None = None, **more: Any
    ) -> Line:
        """Make a line of the groups with records of the layer, or of those `among` them."""
        present = self.present if among is None else self.present & among
        return Line(self.layer.api, name, values, present=present, **more)


def _total(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            found: NDArray[Any] = values.sum(keepdims=True)
            return found
    exact = total(values)
    return np.array([exact], np.int64 if exact < MOST_BYTES else object)


def _summable(values: NDArray[Any]) -> NDArray[Any]:
    """Prepare values whose sums might not fit in 64 bits."""
    if values.dtype.kind == "f" or values.sum(dtype=np.float64) < MOST_BYTES:
        return values
    return values.astype(object)
