"""The basis of a prediction: the curves of one engine that are near to a job's I/O, and a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlalchemy import Connection

from benchdb.measurements.curves import Curve, Measured, curves_of_ids, measured
from benchdb.store.fidelities import fidelities_of
from ior_configs import IorConfig
from predictor.matching.nearest import Catalogue, catalogue_of_rows
from predictor.model.stored import Fitted, Lessons, current_model, read_lessons
from predictor.model.system_model import Knowledge, Model

# The method is made for IOR (Inria RR-9366); the other engines imitate its runs.
_FIRST = "ior"
# The time to predict grows with the cube of the number of cells (a cell is one configuration with
# one number of I/O nodes). On systems with more cells, only those near to a wanted configuration
# are used: they tell nearly as much as all.
_ALL_CELLS = 1000
_NEAR_CELLS = 300
# Curves that are kept for the next job, which often needs the same; each takes about 1 kB.
_MOST_CURVES = 20_000


@dataclass(frozen=True)
class Basis:
    """The measurements of one engine on a system, and the model that is fitted to them.

    Attributes
    ----------
    engine : str or None
        The program that measured; None if nothing was measured on the system.
    knowledge : Knowledge
        The model, and all curves of the engine or those near to the wanted configurations.
    engines : tuple of str
        All engines that measured on the system.
    fitted : Fitted or None
        The model if it was just fitted and is not stored yet.
    survey : Survey
        The summary of the measurements, to read the knowledge of further configurations.
    """

    engine: str | None
    knowledge: Knowledge
    engines: tuple[str, ...]
    fitted: Fitted | None
    survey: Survey


@dataclass(frozen=True, eq=False)
class Survey:
    """A summary of a system's measurements, and their model.

    It is valid as long as the system's `state_of` stays the same.

    Attributes
    ----------
    system : str
        The system.
    engine : str or None
        The program whose measurements are used; None if nothing was measured.
    engines : tuple of str
        All engines that measured on the system.
    rows : tuple of Measured
        The configurations that the engine measured.
    model : Model or None
        The model that is fitted to them; None if it must be fitted first.
    fitted : Fitted or None
        The model if it was just fitted and is not stored yet.
    """

    system: str
    engine: str | None
    engines: tuple[str, ...]
    rows: tuple[Measured, ...] = ()
    model: Model | None = None
    fitted: Fitted | None = None
    _curves: dict[int, Curve] = field(default_factory=dict, init=False, repr=False)

    def near(self, wanted: Iterable[IorConfig]) -> tuple[int, ...]:
        """Find the ids of the measured configurations that are near to a wanted one."""
        if self._cells <= _ALL_CELLS:
            return tuple(row.id for row in self.rows)
        asked = dict.fromkeys(wanted)
        # All wanted configurations share `_ALL_CELLS`.
        wide = min(_NEAR_CELLS, _ALL_CELLS // max(len(asked), 1))
        count = max(wide * len(self.rows) // self._cells, 1)
        near = {row.id for one in asked for row in self._catalogue.near(one, count)}
        return tuple(sorted(near))

    def knowledge(self, connection: Connection, ids: Sequence[int]) -> Knowledge:
        """Read the curves of some configurations (see `near`), and add model and fidelities."""
        missing = [id_ for id_ in ids if id_ not in self._curves]
        for curve in curves_of_ids(connection, self.system, missing, self.engine):
            self._curves[curve.id] = curve
        curves = tuple(self._curves[id_] for id_ in ids if id_ in self._curves)
        for id_ in list(self._curves)[: max(len(self._curves) - _MOST_CURVES, 0)]:
            del self._curves[id_]
        return Knowledge(curves, self.model, fidelities_of(connection, self.system))

    def lessons(self, connection: Connection) -> Lessons | None:
        """Read the curves to fit the model to; None if there is a model, or nothing to fit to."""
        if self.engine is None or not self.rows or self.model is not None:
            return None
        return read_lessons(connection, self.system, self.engine, self.rows)

    def learned(self, fitted: Fitted) -> Survey:
        """Make the same survey with a model that was just fitted."""
        return replace(self, model=fitted.model, fitted=fitted)

    def request_sizes(self, wanted: IorConfig) -> list[int]:
        """The measured request sizes of a configuration's kind, in bytes, ascending."""
        return self._catalogue.request_sizes(wanted)

    def arrange(self) -> None:
        """Build the catalogue that `near` searches now; otherwise its first use builds it."""
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
    """Read a summary of an engine's measurements on a system, and their model.

    Parameters
    ----------
    connection, system, engine, before_fitting
        As for `read_basis`.
    """
    survey = read_unlearned(connection, system, engine)
    found = survey.lessons(connection)
    if found is None:
        return survey
    before_fitting(len(survey.rows))
    return survey.learned(found.learn())


def read_unlearned(connection: Connection, system: str, engine: str | None = None) -> Survey:
    """Read the same without fitting a model: the model is None if it is not stored."""
    rows = measured(connection, system)
    counts = Counter(row.engine for row in rows)
    if engine is None and counts:
        engine = choose_engine(counts)
    own = tuple(row for row in rows if row.engine == engine)
    model = current_model(connection, system, engine) if engine is not None and own else None
    return Survey(system, engine, tuple(sorted(counts)), own, model)


def lessons(connection: Connection, system: str) -> Lessons | None:
    """Read the curves that `read_survey` would fit a model to; None if it would not fit one."""
    return read_unlearned(connection, system).lessons(connection)


def read_basis(
    connection: Connection,
    system: str,
    wanted: Iterable[IorConfig],
    engine: str | None = None,
    *,
    before_fitting: Callable[[int], None] = lambda _: None,
) -> Basis:
    """Read the measurements and the model that are needed to predict some configurations.

    The model is fitted if none is stored, or if measurements were added since.

    Parameters
    ----------
    connection : Connection
        To the database.
    system : str
        The system's name.
    wanted : iterable of IorConfig
        The configurations that stand for the parts of phases (see `configuration`).
    engine : str, optional
        The program whose measurements are used; by default the one that `choose_engine` chooses.
    before_fitting : callable, optional
        Called with the number of configurations before a model is fitted, which takes seconds.
    """
    survey = read_survey(connection, system, engine, before_fitting=before_fitting)
    knowledge = survey.knowledge(connection, survey.near(wanted))
    return Basis(survey.engine, knowledge, survey.engines, survey.fitted, survey)


def choose_engine(configurations: Mapping[str, int]) -> str:
    """Choose IOR, or the engine that measured most configurations.

    Parameters
    ----------
    configurations : mapping of str to int
        Number of configurations that each engine measured; at least one engine.
    """
    return min(configurations, key=lambda name: (name != _FIRST, -configurations[name], name))
