"""What a prediction rests on: of one engine, the curves nearest to what a job does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from benchdb.curves import Curve, curves_of_ids, measured
from ior_configs import IorConfig
from predictor.catalogue import catalogue_of

# The engine that the method is made for; the others do what it would do.
_FIRST = "ior"


@dataclass(frozen=True)
class Basis:
    """Curves of one engine.

    Attributes
    ----------
    engine : str or None
        The program that measured them; None where nothing was measured on the system.
    curves : tuple of Curve
        Those nearest to what is wanted; `matching.find` finds the same as in all.
    engines : tuple of str
        All that measured on the system.
    """

    engine: str | None
    curves: tuple[Curve, ...]
    engines: tuple[str, ...]


def read_basis(
    connection: Connection, system: str, wanted: Iterable[IorConfig], engine: str | None = None
) -> Basis:
    """Read the curves nearest to some configurations.

    Parameters
    ----------
    connection : Connection
        To the database.
    system : str
        The system's name.
    wanted : iterable of IorConfig
        What stands for the parts of phases (see `matching.configuration`).
    engine : str, optional
        The program whose measurements count; `choose_engine` if not given.
    """
    rows = measured(connection, system)
    counts = Counter(row.engine for row in rows)
    if engine is None and counts:
        engine = choose_engine(counts)
    catalogue = catalogue_of(row for row in rows if row.engine == engine)
    found = {row.id for config in wanted if (row := catalogue.nearest(config))}
    curves = curves_of_ids(connection, system, sorted(found), engine) if engine else []
    return Basis(engine, tuple(curves), tuple(sorted(counts)))


def choose_engine(configurations: Mapping[str, int]) -> str:
    """Choose among engines by how many configurations each measured: IOR, else the most."""
    return min(configurations, key=lambda name: (name != _FIRST, -configurations[name], name))
