"""Learns systems again whose measurements changed: reads them and fits their models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from sqlalchemy import Engine

from benchdb.measurements.curves import Curve
from benchdb.store.database import transaction
from ioncast.service.background.preparing import KnownSystems
from ioncast_base.errors import DatabaseError
from predictor.model.measurement_summary import MeasurementSummary, read_summary

_LOG = logging.getLogger("ioncast.keeper")


class Learning:
    """Learns changed systems in a thread, one after the other.

    Fitting a model takes seconds, in which the keeper's other steps go on.
    """

    def __init__(self, database: Engine, systems: KnownSystems) -> None:
        self._database = database
        self._systems = systems
        # Names of systems, in the order in which they are learned.
        self._changed: dict[str, None] = {}
        self._thread: threading.Thread | None = None

    def add(self, system: str) -> None:
        """Forget everything about a system, and learn it again."""
        self._changed[system] = None
        self._systems.forget(system)

    def is_done(self) -> bool:
        """Tell whether all systems are learned; otherwise begin with the next one."""
        if self._thread is not None:
            if self._thread.is_alive():
                return False
            self._thread = None
        if not self._changed:
            return True
        system = next(iter(self._changed))
        del self._changed[system]
        self._thread = threading.Thread(target=self._learn, args=(system,), daemon=True)
        self._thread.start()
        return False

    def _learn(self, system: str) -> None:
        """Read the measurements of a system, and fit its model if none is stored for them.

        If this fails, the system is read when an application is prepared.
        """
        try:
            with transaction(self._database) as connection:
                summary = read_summary(connection, system)
                curves = summary.curves_to_fit(connection) if summary.needs_model else []
            if curves:
                summary = self._fitted(summary, curves)
            summary.arrange()
            self._systems.put(summary)
        except DatabaseError:
            # The keeper's steps report that the database is away.
            return
        except Exception:
            _LOG.exception("system %s cannot be learned", system)

    def _fitted(self, summary: MeasurementSummary, curves: Sequence[Curve]) -> MeasurementSummary:
        """Fit a model and store it, so that commands and later keepers need not fit it."""
        _LOG.info("fitting the model of %s to %d configurations", summary.system, len(curves))
        fitted = summary.fitted_to(curves)
        try:
            with transaction(self._database, write=True) as connection:
                fitted.store_model(connection)
        except DatabaseError as error:
            _LOG.warning("the model of %s cannot be stored: %s", summary.system, error)
        return fitted
