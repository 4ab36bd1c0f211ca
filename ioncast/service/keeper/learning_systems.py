"""Learns systems again whose measurements changed: reads them and fits their models."""

from __future__ import annotations

import logging
import threading

from sqlalchemy import Engine

from benchdb.store.database import transaction
from benchdb.store.fitted_models import store_model
from ioncast.service.keeper.preparing import Surveys
from ioncast_base.errors import DatabaseError
from predictor.matching.basis import read_unlearned
from predictor.model.stored import Fitted, Lessons, to_document

_LOG = logging.getLogger("ioncast.keeper")


class Learning:
    """Learns changed systems in a thread, one after the other.

    Fitting a model takes seconds, in which the keeper's other steps go on.

    Parameters
    ----------
    database : Engine
        The database.
    surveys : Surveys
        Gets everything that is learned.
    """

    def __init__(self, database: Engine, surveys: Surveys) -> None:
        self._database = database
        self._surveys = surveys
        # Names of systems, in the order in which they are learned.
        self._changed: dict[str, None] = {}
        self._thread: threading.Thread | None = None

    def add(self, system: str) -> None:
        """Forget everything about a system, and learn it again."""
        self._changed[system] = None
        self._surveys.forget(system)

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
                survey = read_unlearned(connection, system)
                found = survey.lessons(connection)
            if found is not None:
                survey = survey.learned(self._fitted(found))
            survey.arrange()
            self._surveys.put(survey)
        except DatabaseError:
            # The keeper's steps report that the database is away.
            return
        except Exception:
            _LOG.exception("system %s cannot be learned", system)

    def _fitted(self, found: Lessons) -> Fitted:
        """Fit a model and store it, so that commands and later keepers need not fit it."""
        _LOG.info("fitting the model of %s to %d configurations", found.system, len(found.curves))
        fitted = found.learn()
        try:
            with transaction(self._database, write=True) as connection:
                store_model(
                    connection, found.system, found.engine, found.state, to_document(fitted.model)
                )
        except DatabaseError as error:
            _LOG.warning("the model of %s cannot be stored: %s", found.system, error)
        return fitted
