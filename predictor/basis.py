"""What a prediction rests on: one engine's curves near to what a job does, and their model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from benchdb.curves import Measured, curves_of_ids, measured
from ior_configs import IorConfig
from predictor.catalogue import catalogue_of
from predictor.model import Knowledge
from predictor.stored import Fitted, current_model, fit_current

# The engine that the method is made for; the others do what it would do.
_FIRST = "ior"
# Time to predict grows with the cube of the cells (a configuration with a number of I/O
# nodes). Of larger systems, what is near to something wanted tells nearly all.
_ALL_CELLS = 1000
_NEAR_CELLS = 300


@dataclass(frozen=True)
class Basis:
    """What one engine measured on a system, and learned from it.

    Attributes
    ----------
    engine : str or None
        The program that measured; None where nothing was measured on the system.
    knowledge : Knowledge
        All its curves, or those near to what is wanted, and the model.
    engines : tuple of str
        All that measured on the system.
    fitted : Fitted or None
        The model, where it had to be fitted and is yet to be stored.
    """

    engine: str | None
    knowledge: Knowledge
    engines: tuple[str, ...]
    fitted: Fitted | None


def read_basis(
    connection: Connection,
    system: str,
    wanted: Iterable[IorConfig],
    engine: str | None = None,
    *,
    before_fitting: Callable[[int], None] = lambda _: None,
) -> Basis:
    """Read what is needed to predict some configurations.

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
    before_fitting : callable, optional
        Called with the number of configurations before a model is fitted, which takes
        seconds: where none is stored, or what was measured has changed since.
    """
    rows = measured(connection, system)
    counts = Counter(row.engine for row in rows)
    if engine is None and counts:
        engine = choose_engine(counts)
    own = [row for row in rows if row.engine == engine]
    if engine is None or not own:
        return Basis(engine, Knowledge(()), tuple(sorted(counts)), None)
    model, fitted = current_model(connection, system, engine), None
    if model is None:
        before_fitting(len(own))
        fitted = fit_current(connection, system, engine, own)
        model = fitted.model
    curves = curves_of_ids(connection, system, _near(own, wanted), engine)
    return Basis(engine, Knowledge(tuple(curves), model), tuple(sorted(counts)), fitted)


def _near(rows: Sequence[Measured], wanted: Iterable[IorConfig]) -> list[int]:
    """The ids of what is near to anything wanted."""
    cells = sum(row.coverage for row in rows)
    if cells <= _ALL_CELLS:
        return [row.id for row in rows]
    catalogue = catalogue_of(rows)
    asked = dict.fromkeys(wanted)
    # The more is wanted, the less of it can be near.
    wide = min(_NEAR_CELLS, _ALL_CELLS // max(len(asked), 1))
    count = max(wide * len(rows) // cells, 1)
    return sorted({row.id for one in asked for row in catalogue.near(one, count)})


def choose_engine(configurations: Mapping[str, int]) -> str:
    """Choose among engines by how many configurations each measured: IOR, else the most."""
    return min(configurations, key=lambda name: (name != _FIRST, -configurations[name], name))
