"""The keeper's step that prepares answers for everything that changed in the database."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from benchdb.store.database import transaction
from benchdb.store.fitted_models import state_of
from benchdb.store.systems import system_names
from ioncast.service.background.keeper_progress import KeeperProgress
from ioncast.service.background.learning_systems import Learning
from ioncast.service.background.preparing import KnownSystems, Prepared, Preparing
from ioncast.service.background.state_file import StateFile
from ioncast.service.background.wanted_sizes import WantedSizes
from ioncast.service.decide.prepared import Writer
from ioncast.service.folders.known_database import is_known, remember
from ioncast.service.settings import Settings
from ioncast.service.store.applications import ids_of_applications
from ioncast.service.store.deleting_runs import (
    DeletedRun,
    deleted_after,
    last_deleted,
    last_forgotten,
)
from ioncast.service.store.revisions import applications_after, newest
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import UnknownNameError

# A longer transaction would keep other writers waiting on SQLite.
_BUSY_S = 1.0
# A campaign stores measurements all the time. Fitting a model takes seconds, and preparing all
# answers again takes minutes.
_BETWEEN_MODELS_S = 300.0
_APPLICATIONS_AT_ONCE = 1000

_RESTORED = "the database is older than the prepared answers: preparing all again"

_LOG = logging.getLogger("ioncast.keeper")


class AnswerStep:
    """Prepares applications with new runs, outcomes, measurements, settings or wanted sizes.

    The step ends early when `is_stopping` tells that the keeper must end.
    """

    def __init__(
        self,
        settings: Settings,
        database: Engine,
        file: StateFile,
        progress: KeeperProgress,
        wanted: WantedSizes,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._database = database
        self._file = file
        self._progress = progress
        self._wanted = wanted
        self._is_stopping = is_stopping
        self._systems = KnownSystems()
        self._learning = Learning(database, self._systems)
        # When the change of a system's measurements was last noted, in seconds since boot.
        self._changed_at_s: dict[str, float] = {}
        # Ids of applications, in the order in which they are prepared.
        self._pending: dict[int, None] = {}
        # Systems and keys of the entries that were prepared since the last change.
        self._done: set[tuple[str, str]] = set()
        # Answers must be prepared again without these runs.
        self._deleted: list[DeletedRun] = []
        file.when_opened(self._begin)

    @property
    def is_behind(self) -> bool:
        """Whether applications wait to be prepared."""
        return bool(self._pending or self._deleted)

    def pend(self, applications: Iterable[int]) -> None:
        """Prepare applications again, by their ids."""
        self._pending |= dict.fromkeys(applications)
        self._done = set()

    def step(self, clock: ClockCheck) -> None:
        """Note what changed, and prepare applications for about a second."""
        writer = self._file.writer
        with transaction(self._database) as connection:
            self._note_changes(connection, clock.boot_s)
        if not is_known(self._settings):
            remember(self._settings)
        if not self.is_behind:
            self._progress.store_nothing_new(writer)
            return
        if not self._learning.is_done():
            return
        done, prepared, forgotten = [], [], 0
        with transaction(self._database) as connection:
            preparing = Preparing(
                connection,
                self._settings,
                self._systems,
                self._wanted.by_application,
                several=len(self._pending),
                done=self._done,
            )
            give_up_at = time.monotonic() + _BUSY_S
            for run in self._deleted:
                if self._is_stopping() or time.monotonic() > give_up_at:
                    break
                prepared += _attempted(partial(preparing.prepare_without, run), "a deleted run")
                forgotten += 1
            for application_id in self._pending:
                if self._is_stopping() or time.monotonic() > give_up_at:
                    break
                work = partial(preparing.prepare, application_id)
                prepared += _attempted(work, f"application {application_id}")
                done.append(application_id)
        with writer.transaction():
            for each in prepared:
                writer.put_entries(each.system, each.entries)
                for key, untried in each.untried.items():
                    writer.put_untried(key, each.system, untried)
            if len(done) == len(self._pending) and forgotten == len(self._deleted):
                self._progress.store(writer)
        del self._deleted[:forgotten]
        for application_id in done:
            del self._pending[application_id]
        self._done = preparing.done if self.is_behind else set()

    def _begin(self, _writer: Writer) -> None:
        # The last keeper may have ended before it prepared these.
        self.pend(self._wanted.by_application)

    def _note_changes(self, connection: Connection, boot_s: float) -> None:
        """Note the applications that changes in the database concern."""
        found = newest(connection)
        if any(now < held for now, held in zip(found, self._progress.newest, strict=True)):
            _LOG.info(_RESTORED)
            self._renew()
        self._note_deleted(connection)
        if found != self._progress.newest:
            self.pend(applications_after(connection, *self._progress.newest))
            self._progress.newest = found
        for system in system_names(connection):
            basis = self._basis(connection, system)
            is_due = boot_s >= self._changed_at_s.get(system, -inf) + _BETWEEN_MODELS_S
            if self._progress.bases.get(system) != basis and is_due:
                # First what reads the database: after a failure all of it is done again.
                self.pend(_applications_of(connection, system))
                self._changed_at_s[system] = boot_s
                self._learning.add(system)
                self._progress.bases[system] = basis

    def _note_deleted(self, connection: Connection) -> None:
        """Note the runs that were deleted since the last time."""
        noted = self._progress.deleted
        if noted is not None and noted < last_forgotten(connection):
            _LOG.info("runs were deleted long ago: preparing all answers again without them")
            self._renew()
            noted = None
        elif noted is not None and noted > last_deleted(connection):
            _LOG.info(_RESTORED)
            self._renew()
            noted = None
        new = deleted_after(connection, noted or 0)
        if new:
            self._deleted += new
            self._done = set()
        numbers = [run.number for run in new]
        self._progress.deleted = max([noted or 0, last_forgotten(connection), *numbers])

    def _renew(self) -> None:
        self._pending.clear()
        self._deleted.clear()
        self._file.renew()

    def _basis(self, connection: Connection, system: str) -> str:
        """Make a text that changes with the measurements of a system and with its settings."""
        own = self._settings.of_system(system)
        rules = own.tolerance, own.min_confidence, own.default_io_nodes, own.explore
        return json.dumps([state_of(connection, system, ""), *rules])


def _attempted(work: Callable[[], Prepared], of: str) -> list[Prepared]:
    try:
        return [work()]
    except SQLAlchemyError:
        raise
    except UnknownNameError:
        # All runs of the application were deleted.
        return []
    except Exception:
        # A defect with one application must not keep all others from their answers.
        _LOG.exception("%s keeps the answers that it has", of)
        return []


def _applications_of(connection: Connection, system: str) -> Iterator[int]:
    after = 0
    while page := ids_of_applications(connection, system, after=after, limit=_APPLICATIONS_AT_ONCE):
        yield from page
        after = page[-1]
