"""The measured curves that jobs follow: bandwidth by number of I/O nodes."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import harmonic_mean

from benchdb.measurements.curves import curves
from benchdb.measurements.storing import require_system
from benchdb.store.database import reading
from experiments.shipped import TESTBED
from ioncast_base.errors import InputError
from predictor.matching.basis import choose_engine

BENCHMARKS = TESTBED / "benchmarks.csv"
_TESTBED_NODES = 8


@dataclass(frozen=True)
class IoCurve:
    """A kind of I/O, and how fast it is.

    Attributes
    ----------
    name : str
        What it is called.
    nodes : int or None
        Compute nodes that it was measured with.
    mib_s : mapping of int to float
        Expected MiB/s by number of I/O nodes, in their order; 0 is direct access. It is the
        harmonic mean of the repetitions: so many bytes over the mean time they take.
    """

    name: str
    nodes: int | None
    mib_s: Mapping[int, float]

    @property
    def forwarded(self) -> tuple[int, ...]:
        """The numbers of I/O nodes above 0 that were measured."""
        return tuple(n for n in self.mib_s if n)


def shipped_curves() -> list[IoCurve]:
    """Curves of the emulated system that the project ships measurements of."""
    repetitions: dict[str, list[tuple[int, float]]] = {}
    with BENCHMARKS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pair = int(row["io_nodes"]), float(row["bandwidth_mib_s"])
            repetitions.setdefault(row["name"], []).append(pair)
    return [_curve(name, _TESTBED_NODES, pairs) for name, pairs in sorted(repetitions.items())]


def stored_curves(location: str | None, system: str) -> list[IoCurve]:
    """Curves of a system in the benchmark database, by the ids of their configurations.

    Parameters
    ----------
    location : str or None
        The database (see `benchdb.store.database.open_database`).
    system : str
        The system's name. Where several programs measured on it, those of IOR count, or
        of the one that measured most.

    Raises
    ------
    UnknownNameError
        When the database does not know the system.
    InputError
        When nothing was measured with I/O nodes on it.
    DatabaseError
        When the database cannot be read.
    """
    with reading(location) as connection:
        found = curves(connection, require_system(connection, system))
    counts = Counter(curve.engine for curve in found)
    engine = choose_engine(counts) if counts else None
    made = [
        _curve(
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
            "nothing was measured with I/O nodes on it",
            where=f"system {system!r}",
            remedy="see `ioncast bench coverage`",
        )
    return usable


def _curve(name: str, nodes: int | None, pairs: Iterable[tuple[int, float]]) -> IoCurve:
    cells: dict[int, list[float]] = {}
    for io_nodes, bandwidth in sorted(pairs):
        cells.setdefault(io_nodes, []).append(bandwidth)
    return IoCurve(name, nodes, {n: harmonic_mean(values) for n, values in cells.items()})
