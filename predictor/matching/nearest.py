"""The nearest benchmark: which measured configuration stands for a wanted one.

Only configurations of the same kind are compared: the same operation, api, file access and
spatiality. Of those, only writes that call fsync after each request stand for such writes. Equal
properties (see `Properties`) count before the distance: the nearest in the logarithms of the sizes
stands in (see `distance` and `_rank`). Array operations first reduce the candidates to those at
the smallest distance, so that a search among 100,000 configurations takes less than a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Curve, Measured
from ioncast_base.kinds import Kind
from ioncast_base.wording import counted
from ior_configs import IorConfig
from ior_configs.hints import aggregators_of, without_buffering
from predictor.matching.configurations import Difference, Match, configuration
from summario.phases.values import Part, Phase

Array = NDArray[np.float64]
Comparable = IorConfig | Measured
Benchmark = TypeVar("Benchmark", bound=Curve | Measured)

# The kind of a configuration, and whether it calls fsync after each write. Such a write waits for
# the storage each time, so its bandwidth tells nothing about other writes, nor the reverse.
GroupKey = tuple[Kind, bool]

# The sizes by which configurations of one kind are compared.
SIZES = ("processes", "processes per node", "request size", "bytes per process")
# Equal distances differ by less than this through rounding; other ones differ by far more.
_ROUNDING = 1e-9
# Answers of `_kind_and_orders` that are kept; each takes about 300 bytes.
_MOST_KINDS = 50_000
# The names of properties (see `Properties`); the first changes bandwidth most.
_NAMES: tuple[Literal["collective buffering", "fsync", "order", "conditions"], ...] = (
    *("collective buffering", "fsync", "order", "conditions"),
)


def features(config: Comparable, *, stonewalled: bool = False) -> dict[str, float | None]:
    """The sizes of a configuration by name (see `SIZES`); None is unknown.

    The bytes of runs with a stone wall are unknown: the runs stopped at a time limit, so their
    bandwidth does not depend on the bytes that the configuration asks for.
    """
    per_node = config.tasks / config.nodes if config.tasks and config.nodes else None
    moved = None if stonewalled else config.bytes_per_process
    sizes = (config.tasks, per_node, config.transfer_size, moved)
    return dict(zip(SIZES, sizes, strict=True))


def logarithms(config: Comparable, *, stonewalled: bool = False) -> list[float]:
    """Base-2 logarithms of `features`; NaN is unknown."""
    sizes = features(config, stonewalled=stonewalled).values()
    return [math.nan if size is None else math.log2(size or 1) for size in sizes]


def distance(wanted: Comparable, measured: Comparable, *, stonewalled: bool = False) -> float:
    """Euclidean distance of two configurations in the natural logarithms of their sizes."""
    differing = ratios(wanted, measured, stonewalled=stonewalled)
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in differing.values()))


def ratios(
    wanted: Comparable, measured: Comparable, *, stonewalled: bool = False
) -> dict[str, float]:
    """Sizes that differ, as measured / wanted; sizes unknown on either side are left out."""
    theirs = features(measured, stonewalled=stonewalled)
    pairs = zip(features(wanted).items(), theirs.values(), strict=True)
    return {
        name: their / our
        for (name, our), their in pairs
        if our is not None and their is not None and our != their
    }


class Properties(NamedTuple):
    """The properties of a configuration, beside its kind and its sizes, that change bandwidth.

    They are those of `IorConfig`, but conditions are without the hints that tell the number of
    aggregators. The fsync of reads is "none", because IOR calls it only for writes.
    """

    fsync: str | None
    order: str
    conditions: tuple[str, ...]
    aggregators: int | None


def properties(config: IorConfig) -> Properties:
    """Read the properties of a configuration that either reads or writes."""
    fsync = config.fsync if config.write else "none"
    return _properties(fsync, config.order, config.conditions, config.aggregators)


def _properties(
    fsync: str | None, order: str, conditions: tuple[str, ...], aggregators: int | None
) -> Properties:
    kept = conditions if aggregators is None else without_buffering(conditions)
    return Properties(fsync, order, kept, aggregators)


def differences(wanted: Properties, measured: Properties) -> tuple[Difference, ...]:
    """List the properties that differ; a value that is not known may differ.

    Without hints it is not known whether collective calls are buffered, on both sides alike.
    """
    pairs = {
        "collective buffering": (_aggregators(wanted), _aggregators(measured)),
        "fsync": (wanted.fsync, measured.fsync),
        "order": (wanted.order, measured.order),
        "conditions": (" ".join(wanted.conditions), " ".join(measured.conditions)),
    }
    return tuple(
        Difference(name, *pairs[name])
        for name in _NAMES
        if pairs[name][0] != pairs[name][1] or (name == "fsync" and wanted.fsync is None)
    )


def _aggregators(its: Properties) -> str | None:
    return None if its.aggregators is None else counted(its.aggregators, "aggregator")


def group_of(config: IorConfig) -> GroupKey:
    """Name the benchmarks that may stand for a configuration."""
    return _key(config.kind, properties(config))


def _key(kind: Kind, its: Properties) -> GroupKey:
    return kind, its.fsync == "each"


class Traits(NamedTuple):
    """The properties of a benchmark that the rule uses, as `IorConfig` has them.

    `stonewalled` says whether its runs moved other bytes than the configuration asks for.
    """

    config: Comparable
    kind: Kind
    properties: Properties
    requests_per_block: int | None
    stonewalled: bool
    coverage: int
    id: int


def _rank(wanted: IorConfig, traits: Traits) -> tuple[bool, float, int, bool, bool, int, int]:
    """Rank a benchmark among those with the same differences: the lowest rank stands in.

    Benchmarks with an unknown number of processes come last. Then the distance decides. Equally
    near benchmarks are ranked by, in this order: fewer unknown sizes, the same blocks, no
    O_DIRECT, more measured numbers of I/O nodes, the lower id.
    """
    measured = traits.config
    return (
        measured.tasks is None,
        distance(wanted, measured, stonewalled=traits.stonewalled),
        sum(size is None for size in features(measured).values()),
        traits.requests_per_block != wanted.requests_per_block,
        measured.odirect,
        -traits.coverage,
        traits.id,
    )


class _Group(NamedTuple):
    """Benchmarks that may stand for each other, and arrays with a value for each of them.

    `sizes` has the logarithms, shape (sizes, n), and `properties_of` indices of `properties`.
    """

    benchmarks: list[Any]
    sizes: Array
    properties: list[Properties]
    properties_of: NDArray[np.intp]

    def distances(self, wanted: IorConfig, among: NDArray[np.bool_]) -> Array:
        """Distance to each benchmark in base-2 logarithms; infinite to those not `among`.

        It is infinite too where the number of processes is unknown, unless all are unknown.
        """
        ours = np.array(logarithms(wanted))[:, None]
        # fmax turns NaN into 0, so an unknown size adds nothing to the distance.
        squares = np.fmax((self.sizes - ours) ** 2, 0)
        distances: Array = np.sqrt(squares.sum(axis=0))
        known = among & ~np.isnan(self.sizes[0])
        distances[~(known if known.any() else among)] = np.inf
        return distances

    def nearest(self, wanted: IorConfig) -> list[Any]:
        """The benchmarks at the smallest distance, of those that differ least in properties."""
        ours = properties(wanted)
        ranks = [_unlike(ours, own) for own in self.properties]
        least = np.array([rank == min(ranks) for rank in ranks])
        distances = self.distances(wanted, least[self.properties_of])
        [as_near_as_any] = np.nonzero(distances <= distances.min() + _ROUNDING)
        return [self.benchmarks[place] for place in as_near_as_any]


def _unlike(wanted: Properties, measured: Properties) -> tuple[bool, ...]:
    """Rank properties: the fewer and the less important differ, the lower."""
    found = {difference.name for difference in differences(wanted, measured)}
    return tuple(name in found for name in _NAMES)


class Catalogue(Generic[Benchmark]):
    """The benchmarks of one engine on a system, arranged by kind."""

    def __init__(
        self, benchmarks: Iterable[Benchmark], traits: Callable[[Benchmark], Traits]
    ) -> None:
        found: dict[GroupKey, tuple[list[Benchmark], list[list[float]], list[Properties]]] = {}
        for benchmark in benchmarks:
            its = traits(benchmark)
            alike, sizes, owns = found.setdefault(_key(its.kind, its.properties), ([], [], []))
            alike.append(benchmark)
            sizes.append(logarithms(its.config, stonewalled=its.stonewalled))
            owns.append(its.properties)
        self._traits = traits
        self._groups = {key: _group(*columns) for key, columns in found.items()}

    def group(self, wanted: IorConfig) -> list[Benchmark]:
        """All benchmarks that may stand for a configuration: those of its kind and fsync."""
        found = self._groups.get(group_of(wanted))
        return found.benchmarks if found else []

    def sizes(self, wanted: IorConfig) -> Array:
        """`logarithms` of all benchmarks that `group` lists, shape (n, len(SIZES))."""
        return self._groups[group_of(wanted)].sizes.T

    def request_sizes(self, wanted: IorConfig) -> list[int]:
        """The request sizes of the benchmarks that `group` lists, in bytes, ascending."""
        if group_of(wanted) not in self._groups:
            return []
        logs = np.unique(self.sizes(wanted)[:, SIZES.index("request size")])
        return [round(2.0**log) for log in logs.tolist()]

    def nearest(self, wanted: IorConfig) -> Benchmark | None:
        """Find the nearest of the benchmarks that differ least; None if none may stand in."""
        found = self._groups.get(group_of(wanted))
        if found is None:
            return None
        return self._first(wanted, found)

    def near(self, wanted: IorConfig, count: int) -> list[Benchmark]:
        """Find the `count` nearest benchmarks that may stand in, in any order.

        The result of `nearest` is one of them. The others may differ in their properties: from
        them a model learns how much a property changes. If there are fewer, all are returned.
        """
        found = self._groups.get(group_of(wanted))
        if found is None:
            return []
        if len(found.benchmarks) <= count:
            return list(found.benchmarks)
        everywhere = np.ones(len(found.benchmarks), bool)
        by_distance = np.argsort(found.distances(wanted, everywhere), kind="stable")
        near = [found.benchmarks[place] for place in by_distance[: count - 1]]
        nearest = self._first(wanted, found)
        return near if nearest in near else [nearest, *near]

    def beyond(self, wanted: IorConfig) -> dict[str, float]:
        """Compare a configuration with the smallest and largest measured sizes of its `group`.

        The result has the sizes that lie beyond, as nearest measured / wanted. Sizes that are
        unknown on either side are left out.
        """
        measured, sizes = self.sizes(wanted), logarithms(wanted)
        lowest, highest = np.fmin.reduce(measured, axis=0), np.fmax.reduce(measured, axis=0)
        limits = np.clip(sizes, lowest, highest)
        return {
            name: float(2 ** (limit - size))
            for name, limit, size in zip(SIZES, limits, sizes, strict=True)
            if abs(limit - size) > 0
        }

    def _first(self, wanted: IorConfig, found: _Group) -> Benchmark:
        nearest: list[Benchmark] = found.nearest(wanted)
        return min(nearest, key=lambda one: _rank(wanted, self._traits(one)))


def _group(benchmarks: list[Any], sizes: list[list[float]], owns: list[Properties]) -> _Group:
    """Arrange the benchmarks of one kind as arrays."""
    places = {own: place for place, own in enumerate(dict.fromkeys(owns))}
    which = np.array([places[own] for own in owns])
    return _Group(benchmarks, np.array(sizes).T.copy(), list(places), which)


def catalogue_of_curves(curves: Iterable[Curve]) -> Catalogue[Curve]:
    """Arrange measured curves of one engine."""
    return Catalogue(curves, _of_curve)


def catalogue_of_rows(rows: Iterable[Measured]) -> Catalogue[Measured]:
    """Arrange the rows of one engine's configurations (see `measured` in benchdb)."""
    return Catalogue(rows, _of_row)


def find(wanted: IorConfig, curves: Iterable[Curve] | Catalogue[Curve]) -> Match:
    """Match a configuration: find its benchmark, or the nearest of its kind.

    The match is "exact", "interpolated" or "unknown". A benchmark with an unknown number of
    processes, or with other or unknown properties, is never exact.
    """
    catalogue = curves if isinstance(curves, Catalogue) else catalogue_of_curves(curves)
    nearest, ours = catalogue.nearest(wanted), properties(wanted)
    if nearest is None:
        return Match("unknown", wanted, differences=_forbidding(wanted, catalogue))
    differing = (
        *differences(ours, properties(nearest.config)),
        *_other_blocks(wanted, nearest.config),
    )
    away = distance(wanted, nearest.config, stonewalled=nearest.stonewalled)
    same = not (away or differing) and nearest.config.tasks is not None
    return Match(
        kind="exact" if same else "interpolated",
        wanted=wanted,
        curve=nearest,
        distance=away,
        ratios=ratios(wanted, nearest.config, stonewalled=nearest.stonewalled),
        differences=differing,
    )


def _other_blocks(wanted: IorConfig, measured: IorConfig) -> tuple[Difference, ...]:
    """Tell whether a benchmark has other blocks in the same order; another order says enough."""
    ours, theirs = wanted.requests_per_block, measured.requests_per_block
    if ours == theirs or wanted.order != measured.order:
        return ()
    return (Difference("block", str(ours or "all"), str(theirs or "all")),)


def _forbidding(wanted: IorConfig, catalogue: Catalogue[Curve]) -> tuple[Difference, ...]:
    """The fsync of the benchmarks of the wanted kind that may not stand in; empty without any."""
    other = replace(wanted, fsync="end" if wanted.fsync == "each" else "each")
    found = catalogue.nearest(other)
    if found is None:
        return ()
    return (Difference("fsync", wanted.fsync, properties(found.config).fsync),)


def match(phase: Phase, part: Part, curves: Iterable[Curve], nodes: int | None = None) -> Match:
    """Match a part of a phase: find the benchmark that stands for its configuration.

    O_DIRECT does not count, because Darshan's counters do not show it.
    """
    return find(configuration(phase, part, nodes), curves).for_phase(phase)


def _of_curve(curve: Curve) -> Traits:
    config = curve.config
    return Traits(
        config=config,
        kind=config.kind,
        properties=properties(config),
        requests_per_block=config.requests_per_block,
        stonewalled=curve.stonewalled,
        coverage=len(curve.bandwidths_mib_s),
        id=curve.id,
    )


def kinds_of(rows: Iterable[Measured]) -> set[Kind]:
    """Collect the kinds of benchmarks; nothing stands in for I/O of another kind."""
    return {_of_row(row).kind for row in rows}


def _of_row(row: Measured) -> Traits:
    found, order, in_block = _kind_and_orders(
        row.api,
        row.operation,
        row.file_per_process,
        row.collective,
        row.random_offsets,
        row.tasks == 1,
        row.block_size // row.transfer_size,
        row.segments,
    )
    fsync = row.fsync if row.operation == "write" else "none"
    aggregators = aggregators_of(row.conditions, row.operation, row.nodes)
    own = _properties(fsync, order, row.conditions, aggregators)
    return Traits(row, found, own, in_block, row.stonewalled, row.coverage, row.id)


@lru_cache(_MOST_KINDS)
def _kind_and_orders(
    api: str,
    operation: str,
    file_per_process: bool,
    collective: bool,
    random_offsets: int,
    alone: bool,
    requests_of_a_block: int,
    segments: int,
) -> tuple[Kind, str, int | None]:
    """Compute kind, order and blocks from few values: many configurations share an answer."""
    smallest = 8
    config = IorConfig(
        api=api,
        write=operation == "write",
        read=operation == "read",
        file_per_process=file_per_process,
        collective=collective,
        random_offsets=random_offsets,
        transfer_size=smallest,
        block_size=smallest * requests_of_a_block,
        segments=segments,
        tasks=1 if alone else None,
    )
    return config.kind, config.order, config.requests_per_block
