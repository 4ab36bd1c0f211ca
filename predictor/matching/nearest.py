"""The nearest benchmark: which measured configuration stands for a wanted one.

Only configurations of the same kind are compared: the same operation, api, file access and
spatiality. The nearest in the logarithms of the sizes stands in (see `distance` and `_rank`).
Array operations first reduce the candidates to those at the smallest distance, so that a search
among 100,000 configurations takes less than a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Curve, Measured
from ioncast_base.kinds import Kind
from ior_configs import IorConfig
from predictor.matching.configurations import Match, configuration
from summario.phases.values import Part, Phase

Array = NDArray[np.float64]
Comparable = IorConfig | Measured
Benchmark = TypeVar("Benchmark", bound=Curve | Measured)

# The sizes by which configurations of one kind are compared.
SIZES = ("processes", "processes per node", "request size", "bytes per process")
# Equal distances differ by less than this through rounding; other ones differ by far more.
_ROUNDING = 1e-9
# Answers of `_kind_and_layout` that are kept; each takes about 300 bytes.
_MOST_KINDS = 50_000


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


class Traits(NamedTuple):
    """The properties of a benchmark that the rule uses.

    Attributes
    ----------
    config : IorConfig or Measured
        The configuration, for its sizes.
    kind : Kind
        See `IorConfig.kind`.
    layout : str
        See `IorConfig.layout`.
    stonewalled : bool
        Whether its runs moved other bytes than the configuration asks for.
    coverage : int
        The number of different numbers of I/O nodes that it was measured with.
    id : int
        The configuration's id in the database.
    """

    config: Comparable
    kind: Kind
    layout: str
    stonewalled: bool
    coverage: int
    id: int


def _rank(wanted: IorConfig, traits: Traits) -> tuple[bool, float, int, bool, bool, int, int]:
    """Rank a benchmark of the wanted kind: the one with the lowest rank stands in.

    Benchmarks with an unknown number of processes come last. Then the distance decides. Equally
    near benchmarks are ranked by, in this order: fewer unknown sizes, the same layout, no
    O_DIRECT, more measured numbers of I/O nodes, the lower id.
    """
    measured = traits.config
    return (
        measured.tasks is None,
        distance(wanted, measured, stonewalled=traits.stonewalled),
        sum(size is None for size in features(measured).values()),
        traits.layout != wanted.layout,
        measured.odirect,
        -traits.coverage,
        traits.id,
    )


class _OfKind(Generic[Benchmark]):
    """Benchmarks of one kind, and the logarithms of their sizes, shape (sizes, benchmarks)."""

    def __init__(self, benchmarks: list[Benchmark], sizes: list[list[float]]) -> None:
        self.benchmarks = benchmarks
        self.sizes: Array = np.array(sizes).T.copy()

    def distances(self, wanted: IorConfig) -> Array:
        """Distance to each benchmark, in base-2 logarithms.

        It is infinite if the benchmark's number of processes is unknown, unless all are unknown.
        """
        ours = np.array(logarithms(wanted))[:, None]
        # fmax turns NaN into 0, so an unknown size adds nothing to the distance.
        squares = np.fmax((self.sizes - ours) ** 2, 0)
        distances: Array = np.sqrt(squares.sum(axis=0))
        unknown_tasks = np.isnan(self.sizes[0])
        if not unknown_tasks.all():
            distances[unknown_tasks] = np.inf
        return distances


class Catalogue(Generic[Benchmark]):
    """The benchmarks of one engine on a system, arranged by kind.

    Parameters
    ----------
    benchmarks : iterable of Curve or Measured
        The benchmarks.
    traits : callable
        Reads the traits of a benchmark.
    """

    def __init__(
        self, benchmarks: Iterable[Benchmark], traits: Callable[[Benchmark], Traits]
    ) -> None:
        found: dict[Kind, tuple[list[Benchmark], list[list[float]]]] = {}
        for benchmark in benchmarks:
            its = traits(benchmark)
            same_kind, sizes = found.setdefault(its.kind, ([], []))
            same_kind.append(benchmark)
            sizes.append(logarithms(its.config, stonewalled=its.stonewalled))
        self._traits = traits
        self._kinds = {name: _OfKind(*of_kind) for name, of_kind in found.items()}

    def of_kind(self, kind: Kind) -> list[Benchmark]:
        """All benchmarks of a kind."""
        found = self._kinds.get(kind)
        return found.benchmarks if found else []

    def sizes(self, kind: Kind) -> Array:
        """`logarithms` of all benchmarks of a kind, shape (n, len(SIZES))."""
        return self._kinds[kind].sizes.T

    def nearest(self, wanted: IorConfig) -> Benchmark | None:
        """Find the benchmark that stands for a configuration.

        Parameters
        ----------
        wanted : IorConfig
            The configuration.

        Returns
        -------
        Curve, Measured or None
            The nearest of its kind; None if nothing of its kind was measured.
        """
        found = self._kinds.get(wanted.kind)
        if found is None:
            return None
        return found.benchmarks[self._nearest(found, wanted)]

    def near(self, wanted: IorConfig, count: int) -> list[Benchmark]:
        """Find the `count` nearest benchmarks of the same kind, in any order.

        The result of `nearest` is one of them. If there are fewer, all are returned.
        """
        found = self._kinds.get(wanted.kind)
        if found is None:
            return []
        if len(found.benchmarks) <= count:
            return list(found.benchmarks)
        by_distance = np.argsort(found.distances(wanted), kind="stable")
        places = {self._nearest(found, wanted), *map(int, by_distance[: count - 1])}
        return [found.benchmarks[place] for place in places]

    def beyond(self, wanted: IorConfig) -> dict[str, float]:
        """Compare a configuration with the smallest and largest measured sizes of its kind.

        Returns
        -------
        dict of str to float
            The sizes that are smaller than the smallest or larger than the largest measured
            one, as nearest measured / wanted. Sizes that are unknown on either side are left out.
        """
        measured, sizes = self.sizes(wanted.kind), logarithms(wanted)
        lowest, highest = np.fmin.reduce(measured, axis=0), np.fmax.reduce(measured, axis=0)
        limits = np.clip(sizes, lowest, highest)
        return {
            name: float(2 ** (limit - size))
            for name, limit, size in zip(SIZES, limits, sizes, strict=True)
            if abs(limit - size) > 0
        }

    def _nearest(self, found: _OfKind[Benchmark], wanted: IorConfig) -> int:
        distances = found.distances(wanted)
        [as_near_as_any] = np.nonzero(distances <= distances.min() + _ROUNDING)
        return min(
            map(int, as_near_as_any),
            key=lambda place: _rank(wanted, self._traits(found.benchmarks[place])),
        )


def catalogue_of_curves(curves: Iterable[Curve]) -> Catalogue[Curve]:
    """Arrange measured curves of one engine."""
    return Catalogue(curves, _of_curve)


def catalogue_of_rows(rows: Iterable[Measured]) -> Catalogue[Measured]:
    """Arrange the rows of one engine's configurations (see `measured` in benchdb)."""
    return Catalogue(rows, _of_row)


def find(wanted: IorConfig, curves: Iterable[Curve] | Catalogue[Curve]) -> Match:
    """Match a configuration: find its benchmark, or the nearest of its kind.

    Parameters
    ----------
    wanted : IorConfig
        The configuration.
    curves : iterable of Curve or Catalogue
        Measured curves of one engine.

    Returns
    -------
    Match
        Its kind is "exact", "interpolated" or "unknown". A benchmark with an unknown number of
        processes is never exact.
    """
    catalogue = curves if isinstance(curves, Catalogue) else catalogue_of_curves(curves)
    nearest = catalogue.nearest(wanted)
    if nearest is None:
        return Match("unknown", wanted)
    away = distance(wanted, nearest.config, stonewalled=nearest.stonewalled)
    return Match(
        kind="interpolated" if away or nearest.config.tasks is None else "exact",
        wanted=wanted,
        curve=nearest,
        distance=away,
        ratios=ratios(wanted, nearest.config, stonewalled=nearest.stonewalled),
    )


def match(phase: Phase, part: Part, curves: Iterable[Curve], nodes: int | None = None) -> Match:
    """Match a part of a phase: find the benchmark that stands for its configuration.

    O_DIRECT and fsync do not count, because Darshan's counters do not show them.

    Parameters
    ----------
    phase, part : Phase, Part
        A phase and one of its parts.
    curves : iterable of Curve
        Measured curves of one engine on the system.
    nodes : int, optional
        Compute nodes of the job.
    """
    return find(configuration(phase, part, nodes), curves).for_phase(phase)


def _of_curve(curve: Curve) -> Traits:
    config = curve.config
    return Traits(
        config=config,
        kind=config.kind,
        layout=config.layout,
        stonewalled=curve.stonewalled,
        coverage=len(curve.bandwidths_mib_s),
        id=curve.id,
    )


def _of_row(row: Measured) -> Traits:
    found, layout = _kind_and_layout(
        row.api,
        row.operation,
        row.file_per_process,
        row.collective,
        row.random_offsets,
        row.tasks == 1,
        row.block_size // row.transfer_size,
        row.segments,
    )
    return Traits(row, found, layout, row.stonewalled, row.coverage, row.id)


@lru_cache(_MOST_KINDS)
def _kind_and_layout(
    api: str,
    operation: str,
    file_per_process: bool,
    collective: bool,
    random_offsets: int,
    alone: bool,
    requests_of_a_block: int,
    segments: int,
) -> tuple[Kind, str]:
    """Compute kind and layout from few values, so that many configurations share an answer."""
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
    return config.kind, config.layout
