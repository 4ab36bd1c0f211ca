"""The keeper: one process beside the workers that does what takes time.

    python -m ioncast.service.keeper.process PARENT

It reads its settings as JSON from standard input and ends with its parent. Each second it moves
decisions into the database and prepares answers for what has changed there. A database that is
locked, gone or read-only only makes it wait.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import signal
import sqlite3
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from math import inf
from pathlib import Path
from types import FrameType

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from benchdb.history.applications import applications
from benchdb.history.decisions import DecisionRow, store_decisions
from benchdb.history.outcomes import newest_outcomes
from benchdb.history.revisions import applications_after, newest
from benchdb.measurements.storing import system_names
from benchdb.store.database import existing_database, transaction
from benchdb.store.fitted_models import state_of, store_model
from benchdb.store.tokens import valid_tokens
from ioncast.service.answering.prepared import Wanted, Writer, prepared_file
from ioncast.service.answering.spool import spool_folder
from ioncast.service.keeper.counting import Count
from ioncast.service.keeper.draining import Drain
from ioncast.service.keeper.known_database import is_known, remember
from ioncast.service.keeper.preparing import MOST_SIZES, Prepared, Preparing, Surveys
from ioncast.service.running.background import begin_log, lock_file
from ioncast.service.settings import Settings
from ioncast_base.errors import DatabaseError, IoncastError
from predictor.matching.basis import read_unlearned
from predictor.model.stored import Fitted, Lessons, to_document
from predictor.validation.decision_errors import (
    COUNTED,
    drift,
    drift_to_json,
    errors_so_far,
    errors_to_json,
)

_PR_SET_PDEATHSIG = 1
_PERIOD_S = 1.0
# Who prepares without a pause keeps others from writing to SQLite.
_PAUSE_S = 0.2
_BUSY_S = 1.0
_PATIENCE_S = 2.0
_BETWEEN_SUMMARIES_S = 60.0
# All of a large system takes many seconds.
_COUNTING_S = 0.3
# A campaign stores results all the time; a model takes seconds, all answers take minutes.
_BETWEEN_MODELS_S = 300.0
_STALE_AFTER_S = 90 * 86_400.0
_APPLICATIONS_AT_ONCE = 1000

_LOG = logging.getLogger("ioncast.keeper")


class Keeper:
    """What is done each second; one is enough for a state folder.

    Parameters
    ----------
    settings : Settings
        The site's.

    Attributes
    ----------
    is_stopping : bool
        What is being done ends early when it is set.
    """

    def __init__(self, settings: Settings) -> None:
        self.is_stopping = False
        self._settings = settings
        self._database: Engine = existing_database(settings.database, patience_s=_PATIENCE_S)
        self._drain = Drain(spool_folder(settings.state))
        self._file: Writer | None = None
        self._surveys = Surveys()
        self._progress: dict[str, str] = {}
        self._wanted: defaultdict[int, list[Wanted]] = defaultdict(list)
        # In the order in which they are to be prepared.
        self._pending: dict[int, None] = {}
        # Systems and keys of entries that are prepared since anything changed.
        self._done: set[tuple[str, str]] = set()
        # Systems whose models may have to be fitted, and when their measurements changed last.
        self._changed: dict[str, None] = {}
        self._changed_at_s: dict[str, float] = {}
        self._learning: threading.Thread | None = None
        self._failing: set[str] = set()
        self._summed_up_at_s = 0.0
        self._judged = -1
        # By system: of what state, and what it was.
        self._covered: dict[str, tuple[str, dict[str, object]]] = {}
        self._counting: dict[str, tuple[str, Count]] = {}

    @property
    def is_behind(self) -> bool:
        """Whether applications are yet to be prepared."""
        return bool(self._pending)

    def round(self, now_s: float) -> None:
        """Do once what is to be done; nothing that goes wrong ends it.

        Parameters
        ----------
        now_s : float
            Seconds since 1970.
        """
        if self._file is not None and self._file.is_lost():
            self._close_file()
        steps: list[tuple[str, Callable[[], None]]] = [
            ("tokens are not copied", self._copy_tokens),
            ("answers are not prepared", lambda: self._prepare(now_s)),
            ("decisions wait for the database", lambda: self._store_decisions(now_s)),
            ("summaries are not made", lambda: self._sum_up(now_s)),
        ]
        done = [self.is_stopping or self._attempt(*step) for step in steps]
        self._attempt("the state folder cannot be used", lambda: self._beat(now_s, all(done)))

    def close(self) -> None:
        """Close the database and the file."""
        self._database.dispose()
        self._close_file()

    def _attempt(self, failure: str, step: Callable[[], None]) -> bool:
        """Try a step; say when it begins to fail and when it works again."""
        try:
            step()
        except Exception as error:
            if isinstance(error, sqlite3.Error | OSError):
                self._close_file()
            if failure not in self._failing:
                self._failing.add(failure)
                told = (
                    error if isinstance(error, IoncastError) else f"{type(error).__name__}: {error}"
                )
                _LOG.error("%s: %s", failure, told)
            return not isinstance(error, DatabaseError)
        if failure in self._failing:
            self._failing.remove(failure)
            _LOG.info("no longer so: %s", failure)
        return True

    @property
    def _writer(self) -> Writer:
        if self._file is None:
            self._file = Writer(prepared_file(self._settings.state))
            self._begin(self._file)
        return self._file

    def _begin(self, writer: Writer) -> None:
        """Go on from where the last keeper was; all is to be done again in another database."""
        place = str(self._settings.database)
        if writer.progress().get("database", place) != place:
            writer.renew()
        self._progress = {"runs": "0", "outcomes": "0", **writer.progress(), "database": place}
        self._judged, self._summed_up_at_s = -1, 0.0
        self._covered, self._counting = {}, {}
        self._wanted.clear()
        for size in writer.wanted():
            self._wanted[size.application_id].append(size)
        # The last keeper may not have come to them.
        self._pend(self._wanted)

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _beat(self, now_s: float, database_ok: bool) -> None:
        with self._writer.transaction():
            self._writer.beat(now_s, database_ok=database_ok)

    def _copy_tokens(self) -> None:
        with transaction(self._database) as connection:
            tokens = valid_tokens(connection)
        with self._writer.transaction():
            self._writer.put_tokens(tokens)

    # Preparing

    def _prepare(self, now_s: float) -> None:
        writer = self._writer
        with transaction(self._database) as connection:
            self._note_changes(connection, now_s)
        if not is_known(self._settings):
            remember(self._settings)
        if not self._pending or not self._is_learned():
            return
        done, prepared = [], []
        with transaction(self._database) as connection:
            preparing = Preparing(
                connection,
                self._settings,
                self._surveys,
                self._wanted,
                several=len(self._pending),
                done=self._done,
            )
            give_up_at = time.monotonic() + _BUSY_S
            for application_id in self._pending:
                if self.is_stopping or time.monotonic() > give_up_at:
                    break
                prepared += self._prepared(preparing, application_id)
                done.append(application_id)
        with writer.transaction():
            for each in prepared:
                writer.put_entries(each.system, each.entries)
            if len(done) == len(self._pending):
                writer.put_progress(self._progress)
        for application_id in done:
            del self._pending[application_id]
        self._done = preparing.done if self._pending else set()

    def _note_changes(self, connection: Connection, now_s: float) -> None:
        """Note which applications are to be prepared."""
        held = int(self._progress["runs"]), int(self._progress["outcomes"])
        found = newest(connection)
        if found[0] < held[0] or found[1] < held[1]:
            _LOG.info("the database is older than what was prepared, which is done again")
            self._pending.clear()
            self._writer.renew()
            self._begin(self._writer)
            held = 0, 0
        if found != held:
            self._pend(applications_after(connection, *held))
            self._progress |= {"runs": str(found[0]), "outcomes": str(found[1])}
        for system in system_names(connection):
            wanted = (self._settings.tolerance_of(system), self._settings.default_of(system))
            basis = f"{state_of(connection, system, '')} {wanted}"
            is_due = now_s >= self._changed_at_s.get(system, -inf) + _BETWEEN_MODELS_S
            if self._progress.get(f"basis of {system}") != basis and is_due:
                self._changed_at_s[system] = now_s
                self._changed[system] = None
                self._surveys.forget(system)
                self._progress[f"basis of {system}"] = basis
                self._pend(_applications_of(connection, system))

    def _pend(self, applications: Iterable[int]) -> None:
        self._pending |= dict.fromkeys(applications)
        self._done = set()

    def _is_learned(self) -> bool:
        """Whether all that changed is known again; else it is being read, and the rest goes on."""
        if self._learning is not None:
            if self._learning.is_alive():
                return False
            self._learning = None
        if not self._changed:
            return True
        system = next(iter(self._changed))
        del self._changed[system]
        self._learning = threading.Thread(target=self._learn, args=(system,), daemon=True)
        self._learning.start()
        return False

    def _learn(self, system: str) -> None:
        """Read what there is on a system, and fit its model where that is yet to be done.

        What cannot be read is read again when it is needed.
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
            # The keeper's next steps say that it is away.
            return
        except Exception:
            _LOG.exception("what there is on %s cannot be learned", system)

    def _fitted(self, found: Lessons) -> Fitted:
        """Fit a model and store it, so that others need not."""
        _LOG.info("fitting the model of %s to %d configurations", found.system, len(found.curves))
        fitted = found.learn()
        try:
            with transaction(self._database, write=True) as connection:
                store_model(
                    connection, found.system, found.engine, found.state, to_document(fitted.model)
                )
        except DatabaseError as error:
            _LOG.warning("the model of %s cannot be kept: %s", found.system, error)
        return fitted

    def _prepared(self, preparing: Preparing, application_id: int) -> list[Prepared]:
        try:
            return [preparing.prepare(application_id)]
        except SQLAlchemyError:
            raise
        except Exception:
            # One that cannot be prepared must not keep all others from being so.
            _LOG.exception("application %d is left as it was", application_id)
            return []

    # Decisions

    def _store_decisions(self, now_s: float) -> None:
        with self._drain.batch(now_s) as batch:
            if batch.rows:
                with transaction(self._database, write=True) as connection:
                    store_decisions(connection, batch.rows)
        for line in batch.unusable:
            _LOG.warning("a line of the spool is no decision: %s", line)
        self._note_sizes(batch.rows)

    def _note_sizes(self, rows: Iterable[DecisionRow]) -> None:
        """Note sizes that were asked for and are far from all runs."""
        new = []
        for row in rows:
            if row.source != "model" or row.application_id is None or row.tasks is None:
                continue
            size = Wanted(row.application_id, row.tasks, row.nodes)
            known = self._wanted[row.application_id]
            if size not in known:
                known.append(size)
                del known[:-MOST_SIZES]
                new.append(row.application_id)
        if new:
            with self._writer.transaction():
                self._writer.put_wanted(size for sizes in self._wanted.values() for size in sizes)
            self._pend(new)

    # Summaries

    def _sum_up(self, now_s: float) -> None:
        if now_s >= self._summed_up_at_s + _BETWEEN_SUMMARIES_S:
            with transaction(self._database) as connection:
                self._put_summaries(self._outcomes(connection), now_s)
                self._begin_coverage(connection, now_s)
            self._summed_up_at_s = now_s
        self._cover(now_s)

    def _put_summaries(self, found: dict[str, object], now_s: float) -> None:
        at = datetime.fromtimestamp(now_s, timezone.utc).isoformat(timespec="seconds")
        with self._writer.transaction():
            for name, value in found.items():
                self._writer.put_summary(name, value, at)

    def _outcomes(self, connection: Connection) -> dict[str, object]:
        """Errors and drift, where outcomes are others than the last time."""
        revision = newest(connection)[1]
        if revision == self._judged:
            return {}
        rows = newest_outcomes(connection, limit=COUNTED)
        self._judged = revision
        return {
            "validation": errors_to_json(errors_so_far(rows)),
            "drift": drift_to_json(drift(rows)),
        }

    def _begin_coverage(self, connection: Connection, now_s: float) -> None:
        """Begin to count where measurements are others than the last time."""
        states = {
            name: self._progress.get(f"basis of {name}", "") for name in system_names(connection)
        }
        now = datetime.fromtimestamp(now_s, timezone.utc)
        for system, state in states.items():
            if system not in self._counting and self._covered.get(system, ("",))[0] != state:
                self._counting[system] = state, Count(system, now, _STALE_AFTER_S)
        for system in self._covered.keys() - states:
            del self._covered[system]

    def _cover(self, now_s: float) -> None:
        """Go on counting for a while."""
        if not self._counting:
            return
        give_up_at = time.monotonic() + _COUNTING_S
        with transaction(self._database) as connection:
            while self._counting and time.monotonic() < give_up_at:
                system, (state, count) = next(iter(self._counting.items()))
                if count.read_page(connection):
                    continue
                summary = {"system": system, **asdict(count.summary())}
                self._covered[system] = state, summary
                del self._counting[system]
        if not self._counting:
            summaries = [summary for _, (_, summary) in sorted(self._covered.items())]
            self._put_summaries({"coverage": summaries}, now_s)


def _applications_of(connection: Connection, system: str) -> Iterator[int]:
    after = 0
    while page := applications(connection, system=system, after=after, limit=_APPLICATIONS_AT_ONCE):
        yield from (found.application.id for found in page)
        after = page[-1].application.id


def keep(settings: Settings) -> None:
    """Work until a signal says to end; at once, where another keeper is at work."""
    path = lock_file(settings.state)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        keeper = Keeper(settings)
        _end_on_signals(keeper)
        # Without its lock another one may be at work.
        while not keeper.is_stopping and _is_at(lock.fileno(), path):
            next_s = time.monotonic() + _PERIOD_S
            keeper.round(time.time())
            time.sleep(_PAUSE_S)
            while not (keeper.is_behind or keeper.is_stopping) and time.monotonic() < next_s:
                time.sleep(_PAUSE_S)
        keeper.close()


def _end_on_signals(keeper: Keeper) -> None:
    """Note signals; of a parent's threads each sends one as it dies.

    An Event would be set under a lock that the interrupted code, or the handler of the signal
    before, may hold already.
    """

    def end(_signal: int, _frame: FrameType | None) -> None:
        keeper.is_stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def main() -> None:
    """Keep, as long as the parent lives."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
    begin_log()
    keep(Settings.model_validate_json(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
