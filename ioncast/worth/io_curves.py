"""The measured curves that jobs follow: bandwidth by number of I/O nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import harmonic_mean

from benchdb.measurements.curves import curves
from benchdb.store.database import reading
from benchdb.store.systems import require_system
from ioncast_base.errors import InputError
from predictor.model.measurement_summary import choose_engine


@dataclass(frozen=True)
class IoCurve:
    """The bandwidth of one kind of I/O by number of I/O nodes, in ascending order.

    Each is the harmonic mean of the repetitions: the bytes over the mean time that they take.
    `nodes` are the compute nodes of the measurements; None if unknown.
    """

    name: str
    nodes: int | None
    mib_s: Mapping[int, float]

    @property
    def forwarded(self) -> tuple[int, ...]:
        """The measured numbers of I/O nodes, without 0."""
        return tuple(n for n in self.mib_s if n)


def stored_curves(location: str | None, system: str) -> list[IoCurve]:
    """Curves of a system in the benchmark database; their names are the ids of configurations.

    If several programs measured on it, the measurements of IOR count, else those of the program
    with most configurations. A system without measurements with I/O nodes is an InputError.
    """
    with reading(location) as connection:
        found = curves(connection, require_system(connection, system))
    counts = Counter(curve.engine for curve in found)
    engine = choose_engine(counts) if counts else None
    made = [
        io_curve(
            str(curve.id),
            curve.config.nodes,
            [(n, value) for n, values in curve.bandwidths_mib_s.items() for value in values],
        )
        for curve in found
        if curve.engine == engine
    ]
    usable = [curve for curve in made if curve.forwarded]
    if not usable:
        raise InputError(
            "it has no measurements with I/O nodes",
            where=f"system {system!r}",
            remedy="see `ioncast bench coverage`",
        )
    return usable


def io_curve(name: str, nodes: int | None, pairs: Iterable[tuple[int, float]]) -> IoCurve:
    """Make a curve of pairs of I/O nodes and MiB/s, one for each repetition."""
    cells: dict[int, list[float]] = {}
    for io_nodes, bandwidth in sorted(pairs):
        cells.setdefault(io_nodes, []).append(bandwidth)
    return IoCurve(name, nodes, {n: harmonic_mean(values) for n, values in cells.items()})
