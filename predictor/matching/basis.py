"""What a prediction rests on: one engine's curves near to what a job does, and their model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlalchemy import Connection

from benchdb.measurements.curves import Curve, Measured, curves_of_ids, measured
from ior_configs import IorConfig
from predictor.matching.nearest import Catalogue, catalogue_of_rows
from predictor.model.stored import Fitted, Lessons, current_model, read_lessons
from predictor.model.system_model import Knowledge, Model

# The engine that the method is made for; the others do what it would do.
_FIRST = "ior"
# Time to predict grows with the cube of the cells (a configuration with a number of I/O
# nodes). Of larger systems, what is near to something wanted tells nearly all.
_ALL_CELLS = 1000
_NEAR_CELLS = 300
# What is near to one job is often near to others; a curve takes about a kilobyte.
_MOST_CURVES = 20_000


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


@dataclass(frozen=True, eq=False)
class Survey:
    """What there is to predict from on a system: good until `state_of` it changes.

    Attributes
    ----------
    system : str
        The system.
    engine : str or None
        The program whose measurements count; None where nothing was measured.
    engines : tuple of str
        All that measured on the system.
    rows : tuple of Measured
        What the engine measured, in summary.
    model : Model or None
        What was learned from it.
    fitted : Fitted or None
        The model, where it had to be fitted and is yet to be stored.
    """

    system: str
    engine: str | None
    engines: tuple[str, ...]
    rows: tuple[Measured, ...] = ()
    model: Model | None = None
    fitted: Fitted | None = None
    _curves: dict[int, Curve] = field(default_factory=dict, init=False, repr=False)

    def near(self, wanted: Iterable[IorConfig]) -> tuple[int, ...]:
        """The ids of the configurations that are near to anything wanted."""
        if self._cells <= _ALL_CELLS:
            return tuple(row.id for row in self.rows)
        asked = dict.fromkeys(wanted)
        # The more is wanted, the less of it can be near.
        wide = min(_NEAR_CELLS, _ALL_CELLS // max(len(asked), 1))
        count = max(wide * len(self.rows) // self._cells, 1)
        near = {row.id for one in asked for row in self._catalogue.near(one, count)}
        return tuple(sorted(near))

    def knowledge(self, connection: Connection, ids: Sequence[int]) -> Knowledge:
        """What the curves of some configurations (see `near`) and the model tell."""
        missing = [id_ for id_ in ids if id_ not in self._curves]
        for curve in curves_of_ids(connection, self.system, missing, self.engine):
            self._curves[curve.id] = curve
        curves = tuple(self._curves[id_] for id_ in ids if id_ in self._curves)
        for id_ in list(self._curves)[: max(len(self._curves) - _MOST_CURVES, 0)]:
            del self._curves[id_]
        return Knowledge(curves, self.model)

    def lessons(self, connection: Connection) -> Lessons | None:
        """What its model is to be fitted on, where it has none."""
        if self.engine is None or not self.rows or self.model is not None:
            return None
        return read_lessons(connection, self.system, self.engine, self.rows)

    def learned(self, fitted: Fitted) -> Survey:
        """The same with a model."""
        return replace(self, model=fitted.model, fitted=fitted)

    def arrange(self) -> None:
        """Make ready now what `near` takes; else it is made when that is first needed."""
        _ = self._catalogue

    @cached_property
    def _cells(self) -> int:
        return sum(row.coverage for row in self.rows)

    @cached_property
    def _catalogue(self) -> Catalogue[Measured]:
        return catalogue_of_rows(self.rows)


def read_survey(
    connection: Connection,
    system: str,
    engine: str | None = None,
    *,
    before_fitting: Callable[[int], None] = lambda _: None,
) -> Survey:
    """Read what an engine measured on a system, and what was learned from it.

    Parameters
    ----------
    connection, system, engine, before_fitting
        As of `read_basis`.
    """
    survey = read_unlearned(connection, system, engine)
    found = survey.lessons(connection)
    if found is None:
        return survey
    before_fitting(len(survey.rows))
    return survey.learned(found.learn())


def read_unlearned(connection: Connection, system: str, engine: str | None = None) -> Survey:
    """Read the same without fitting a model: none, where it is yet to be fitted."""
    rows = measured(connection, system)
    counts = Counter(row.engine for row in rows)
    if engine is None and counts:
        engine = choose_engine(counts)
    own = tuple(row for row in rows if row.engine == engine)
    model = current_model(connection, system, engine) if engine is not None and own else None
    return Survey(system, engine, tuple(sorted(counts)), own, model)


def lessons(connection: Connection, system: str) -> Lessons | None:
    """What `read_survey` would fit a model on; None where it need not."""
    return read_unlearned(connection, system).lessons(connection)


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
    survey = read_survey(connection, system, engine, before_fitting=before_fitting)
    knowledge = survey.knowledge(connection, survey.near(wanted))
    return Basis(survey.engine, knowledge, survey.engines, survey.fitted)


def choose_engine(configurations: Mapping[str, int]) -> str:
    """Choose among engines by how many configurations each measured: IOR, else the most."""
    return min(configurations, key=lambda name: (name != _FIRST, -configurations[name], name))
