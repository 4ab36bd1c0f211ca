"""A summary of a system's measurements with their model, from which predictions read knowledge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from sqlalchemy import Connection

from benchdb.measurements.curves import Curve, Measured, curves_of_ids, measured
from benchdb.measurements.file_rates import FileRate, rates_of_system
from benchdb.store.fidelities import fidelities_of
from benchdb.store.fitted_models import state_of, store_model
from benchdb.store.system_changes import change_of
from ior_configs import IorConfig
from predictor.matching.nearest import Catalogue, catalogue_of_rows
from predictor.model.stored import current_model, to_document
from predictor.model.system_model import Model, SystemModel

# The method is made for IOR (Inria RR-9366); the other engines imitate its runs.
_FIRST = "ior"
# The time to fit and to predict grows with the cube of the number of cells (a cell is one
# configuration with one number of I/O nodes). On systems with more cells, a model is fitted to a
# random sample, and a prediction uses only cells near to a wanted configuration: they tell nearly
# as much as all.
_MOST_CELLS = 1000
_NEAR_CELLS = 300
# From before a change, so many cells tell nearly as much about its effect as all.
_EARLIER_CELLS = 300
_SEED = 9366
# Curves that are kept for the next job, which often needs the same; each takes about 1 kB.
_MOST_CURVES = 20_000


@dataclass(frozen=True, eq=False)
class MeasurementSummary:
    """The configurations that one engine measured on a system, and the model fitted to them.

    It is valid as long as the system's `state_of` stays the same. `engine` is None and `state`
    empty if nothing was measured; `model` is None if it must be fitted first. `earlier` are the
    configurations that the engine measured before the system's newest change, if they still tell
    anything.
    """

    system: str
    engine: str | None
    engines: tuple[str, ...]
    state: str
    rows: tuple[Measured, ...]
    model: Model | None
    file_rates: tuple[FileRate, ...] = ()
    earlier: tuple[Measured, ...] = ()
    _curves: dict[tuple[int, bool], Curve] = field(default_factory=dict, init=False, repr=False)

    @property
    def needs_model(self) -> bool:
        """Whether there are measurements without a current model."""
        return bool(self.rows) and self.model is None

    def near(self, wanted: Iterable[IorConfig]) -> tuple[int, ...]:
        """Find the ids of the measured configurations that are near to a wanted one."""
        rows = (*self.rows, *self.earlier)
        if self._cells <= _MOST_CELLS:
            return tuple(dict.fromkeys(row.id for row in rows))
        asked = dict.fromkeys(wanted)
        # All wanted configurations share `_MOST_CELLS`.
        wide = min(_NEAR_CELLS, _MOST_CELLS // max(len(asked), 1))
        count = max(wide * len(rows) // self._cells, 1)
        near = {row.id for one in asked for row in self._catalogue.near(one, count)}
        return tuple(sorted(near))

    def knowledge(self, connection: Connection, ids: Sequence[int]) -> SystemModel:
        """Read the curves of some configurations (see `near`), and add model and fidelities."""
        curves = self._read(connection, ids, before_change=False)
        is_used = self.earlier and self.model is not None and self.model.knows_change
        earlier = self._read(connection, ids, before_change=True) if is_used else ()
        for key in list(self._curves)[: max(len(self._curves) - _MOST_CURVES, 0)]:
            del self._curves[key]
        return SystemModel(
            curves, self.model, fidelities_of(connection, self.system), self.file_rates, earlier
        )

    def _read(
        self, connection: Connection, ids: Sequence[int], *, before_change: bool
    ) -> tuple[Curve, ...]:
        """Read curves that were not read yet, and keep them."""
        missing = [id_ for id_ in ids if (id_, before_change) not in self._curves]
        for curve in self._curves_of(connection, missing, before_change=before_change):
            self._curves[curve.id, before_change] = curve
        keys = ((id_, before_change) for id_ in ids)
        return tuple(self._curves[key] for key in keys if key in self._curves)

    def _curves_of(
        self, connection: Connection, ids: Sequence[int], *, before_change: bool
    ) -> list[Curve]:
        return curves_of_ids(connection, self.system, ids, self.engine, before_change=before_change)

    def curves_to_fit(self, connection: Connection) -> list[Curve]:
        """Read the curves to fit a model to: all, or a random sample with a fixed seed.

        Of earlier curves there are only as many as leave the fit as fast as on any system. Those
        of configurations that were measured again come first, because they tell most.
        """
        ids = sorted(row.id for row in _some(self.rows, _MOST_CELLS))
        found = self._curves_of(connection, ids, before_change=False)
        if not self.earlier:
            return found
        room = min(_EARLIER_CELLS, _MOST_CELLS - _cells(self.rows))
        earlier = sorted(row.id for row in _some(self.earlier, room, set(ids)))
        return [*found, *self._curves_of(connection, earlier, before_change=True)]

    def fitted_to(self, curves: Sequence[Curve]) -> MeasurementSummary:
        """Fit the model. This takes seconds, and needs no database."""
        # Fitting needs libraries that take longer to import than a prediction takes.
        from predictor.model.fitting import fit_model  # noqa: PLC0415

        return replace(self, model=fit_model(curves))

    def store_model(self, connection: Connection) -> None:
        """Store the model in the place of the last one of the system and engine."""
        if self.engine is None or self.model is None:
            raise ValueError("no model to store")
        store_model(connection, self.system, self.engine, self.state, to_document(self.model))

    def request_sizes(self, wanted: IorConfig) -> list[int]:
        """The measured request sizes of a configuration's kind, in bytes, ascending."""
        return self._catalogue.request_sizes(wanted)

    def arrange(self) -> None:
        """Build the catalogue that `near` searches now; otherwise its first use builds it."""
        _ = self._catalogue

    @cached_property
    def _cells(self) -> int:
        return _cells((*self.rows, *self.earlier))

    @cached_property
    def _catalogue(self) -> Catalogue[Measured]:
        return catalogue_of_rows((*self.rows, *self.earlier))


def read_summary(
    connection: Connection, system: str, engine: str | None = None
) -> MeasurementSummary:
    """Read the summary of an engine's measurements on a system, with their model if it is stored.

    By default `choose_engine` chooses the engine. If nothing was measured, there are no rows.
    """
    rows = measured(connection, system)
    counts = Counter(row.engine for row in rows)
    if engine is None and counts:
        engine = choose_engine(counts)
    own = tuple(row for row in rows if row.engine == engine)
    state, model = "", None
    earlier: tuple[Measured, ...] = ()
    if engine is not None and own:
        state = state_of(connection, system, engine)
        model = current_model(connection, system, engine, state)
        # As many new cells as a model is fitted to tell more than all old ones.
        if change_of(connection, system) and _cells(own) < _MOST_CELLS:
            before = measured(connection, system, before_change=True)
            earlier = tuple(row for row in before if row.engine == engine)
    rates = tuple(rates_of_system(connection, system))
    return MeasurementSummary(
        system, engine, tuple(sorted(counts)), state, own, model, rates, earlier
    )


def choose_engine(configurations: Mapping[str, int]) -> str:
    """Choose IOR, or the engine that measured most configurations; at least one engine is given."""
    return min(configurations, key=lambda name: (name != _FIRST, -configurations[name], name))


def _cells(rows: Iterable[Measured]) -> int:
    return sum(row.coverage for row in rows)


def _some(
    configurations: Sequence[Measured], most: int, preferred: Collection[int] = ()
) -> Sequence[Measured]:
    """Take all, or a random sample with at most so many cells; at least one configuration.

    Configurations whose ids are preferred come first.
    """
    if _cells(configurations) <= most:
        return configurations
    shuffled = random.Random(_SEED).sample(configurations, len(configurations))  # noqa: S311
    shuffled.sort(key=lambda row: row.id not in preferred)
    cells = accumulate(row.coverage for row in shuffled)
    return shuffled[: max(sum(count <= most for count in cells), 1)]
