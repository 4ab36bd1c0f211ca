"""The nearest benchmark: the one rule that tells which measured configuration stands for another.

Only configurations of the same kind are compared: the same operation, api, file access and
spatiality. Of these the nearest in the logarithms of their sizes stands in (see `distance` and
`_rank`). Arrays first leave the few that are as near as any, so that the nearest of a hundred
thousand takes less than a millisecond.
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
# A kind and a layout take about 300 bytes.
_MOST_KINDS = 50_000


def features(config: Comparable, *, stonewalled: bool = False) -> dict[str, float | None]:
    """The sizes of a configuration by name (see `SIZES`); None stands for unknown.

    The bytes of runs that a stone wall ended count as unknown: the runs moved what the time
    allowed, and their bandwidth does not depend on what they were asked for.
    """
    per_node = config.tasks / config.nodes if config.tasks and config.nodes else None
    moved = None if stonewalled else config.bytes_per_process
    sizes = (config.tasks, per_node, config.transfer_size, moved)
    return dict(zip(SIZES, sizes, strict=True))


def logarithms(config: Comparable, *, stonewalled: bool = False) -> list[float]:
    """Base-2 logarithms of `features`; NaN stands for unknown."""
    sizes = features(config, stonewalled=stonewalled).values()
    return [math.nan if size is None else math.log2(size or 1) for size in sizes]


def distance(wanted: Comparable, measured: Comparable, *, stonewalled: bool = False) -> float:
    """Euclidean distance of two configurations in the natural logarithms of their sizes."""
    differing = ratios(wanted, measured, stonewalled=stonewalled)
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in differing.values()))


def ratios(
    wanted: Comparable, measured: Comparable, *, stonewalled: bool = False
) -> dict[str, float]:
    """Sizes that differ, as measured / wanted; a size that either does not know is left out."""
    theirs = features(measured, stonewalled=stonewalled)
    pairs = zip(features(wanted).items(), theirs.values(), strict=True)
    return {
        name: their / our
        for (name, our), their in pairs
        if our is not None and their is not None and our != their
    }


class Traits(NamedTuple):
    """What the rule reads of a benchmark.

    Attributes
    ----------
    config : IorConfig or Measured
        Its sizes.
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

    A benchmark with an unknown number of processes comes last. Then the distance counts. Of
    equally near benchmarks the one with fewer unknown sizes is taken, then one of the same
    layout, without O_DIRECT, measured with more numbers of I/O nodes, stored first.
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
        """Distance to each, in base-2 logarithms; infinite without processes, unless all are."""
        ours = np.array(logarithms(wanted))[:, None]
        # fmax takes the number where the other is NaN.
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
        Tells the traits of a benchmark.
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

    def of_kind(self, wanted: IorConfig) -> list[Benchmark]:
        """All benchmarks of a configuration's kind."""
        found = self._kinds.get(wanted.kind)
        return found.benchmarks if found else []

    def sizes(self, wanted: IorConfig) -> Array:
        """`logarithms` of all benchmarks of a configuration's kind, shape (n, len(SIZES))."""
        return self._kinds[wanted.kind].sizes.T

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
        """Find the nearest of its kind, at most `count`, in any order; `nearest` is one of them."""
        found = self._kinds.get(wanted.kind)
        if found is None:
            return []
        if len(found.benchmarks) <= count:
            return list(found.benchmarks)
        by_distance = np.argsort(found.distances(wanted), kind="stable")
        places = {self._nearest(found, wanted), *map(int, by_distance[: count - 1])}
        return [found.benchmarks[place] for place in places]

    def beyond(self, wanted: IorConfig) -> dict[str, float]:
        """Tell by how much a configuration is beyond the sizes measured of its kind.

        Returns
        -------
        dict of str to float
            The sizes that are smaller than the smallest or larger than the largest: measured /
            wanted. A size that is unknown on either side is never beyond.
        """
        measured, sizes = self.sizes(wanted), logarithms(wanted)
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
    """Arrange what one engine measured (see `benchdb.measurements.curves.measured`)."""
    return Catalogue(rows, _of_row)


def find(wanted: IorConfig, curves: Iterable[Curve] | Catalogue[Curve]) -> Match:
    """Match a configuration: find its benchmark, or the nearest of its kind.

    Parameters
    ----------
    wanted : IorConfig
        The configuration.
    curves : iterable of Curve or Catalogue
        Measured curves of one engine; at least those that `Catalogue.nearest` takes.

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

    O_DIRECT and fsync take no part, because Darshan's counters do not show them.

    Parameters
    ----------
    phase, part : Phase, Part
        The part, and the phase that it is of.
    curves : iterable of Curve
        Measured curves of one engine on the system.
    nodes : int, optional
        Compute nodes of the job.
    """
    return find(configuration(phase, part, nodes), curves)


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
    """Tell the kind and the layout without sizes, so that many configurations share an answer."""
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
