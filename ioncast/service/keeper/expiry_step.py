"""The keeper's step that deletes data which have expired."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Protocol

from sqlalchemy import Connection, Engine

from benchdb.history.deleting_runs import (
    delete_old_runs,
    delete_outcomes,
    forget_deleted,
    is_forgettable,
    old_outcomes,
    old_runs,
)
from benchdb.history.expired_decisions import (
    BEGINNING,
    delete_least_useful,
    delete_too_old,
    has_too_old,
    takes_too_much,
)
from benchdb.history.kept_results import forget_expired, has_expired
from benchdb.history.outcomes import JoinedOutcome, outcomes_of_decisions, outcomes_of_ids
from benchdb.store.database import transaction
from benchdb.store.expired_errors import add_expired
from benchdb.store.writes import delete_old_writes, has_old_writes
from ioncast.service.settings import Settings
from predictor.validation.decision_errors import judge
from predictor.validation.monthly_errors import monthly_errors

_BETWEEN_S = 60.0
# Decisions wait in the spool meanwhile.
_BUSY_S = 0.3
# Services that share the database see deleted runs within seconds, unless they are stopped.
_FORGET_AFTER_DAYS = 7

# A function that looks for expired data, or deletes a part of them.
_Work = Callable[[Connection], object]


class _WorkBefore(Protocol):
    """The same for data from before a time."""

    def __call__(self, connection: Connection, first_kept: datetime) -> object: ...


class ExpiryStep:
    """Looks for expired data once a minute, and deletes them in short transactions.

    Parameters
    ----------
    settings : Settings
        How long data stay, and how much space they may take.
    database : Engine
        The database.
    """

    def __init__(self, settings: Settings, database: Engine) -> None:
        self._database = database
        self._most_bytes = settings.keep_decisions_mib << 20
        # Days that data stay, 0 for ever; how to look for older ones, and how to delete them.
        self._by_age: tuple[tuple[int, _WorkBefore, _WorkBefore], ...] = (
            (settings.keep_decisions_days, has_too_old, _delete_old_decisions),
            (settings.keep_runs_days, old_runs, delete_old_runs),
            (settings.keep_outcomes_days, old_outcomes, _delete_old_outcomes),
            (settings.keep_runs_days, has_old_writes, delete_old_writes),
            (_FORGET_AFTER_DAYS, is_forgettable, forget_deleted),
        )
        self._place = BEGINNING
        self._next_s = -math.inf

    def step(self, now_s: float) -> None:
        """Delete for a part of a second; go on the next time if more is left."""
        if now_s < self._next_s:
            return
        give_up_at = time.monotonic() + _BUSY_S
        for look, delete in self._works(datetime.fromtimestamp(now_s, timezone.utc)):
            while self._finds(look):
                delete()
                if time.monotonic() > give_up_at:
                    return
        self._next_s = now_s + _BETWEEN_S

    def _finds(self, look: _Work) -> bool:
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(self._database) as connection:
            return bool(look(connection))

    def _works(self, now: datetime) -> Iterator[tuple[_Work, Callable[[], None]]]:
        """Yield functions that look for expired data, each with one that deletes some of them."""
        yield partial(has_expired, now=now), partial(self._write, partial(forget_expired, now=now))
        for days, look, delete in self._by_age:
            if days:
                first_kept = now - timedelta(days=days)
                work = partial(delete, first_kept=first_kept)
                yield partial(look, first_kept=first_kept), partial(self._write, work)
        if self._most_bytes:
            yield partial(takes_too_much, most_bytes=self._most_bytes), self._shrink

    def _write(self, delete: _Work) -> None:
        with transaction(self._database, write=True) as connection:
            delete(connection)

    def _shrink(self) -> None:
        """Delete decisions that take too much space."""
        with transaction(self._database, write=True) as connection:
            place = delete_least_useful(
                connection, self._most_bytes, self._place, _sum_up_decisions
            )
        # The rows are back if the commit failed.
        self._place = place


def _delete_old_decisions(connection: Connection, first_kept: datetime) -> None:
    delete_too_old(connection, first_kept, _sum_up_decisions)


def _delete_old_outcomes(connection: Connection, first_kept: datetime) -> None:
    ids = old_outcomes(connection, first_kept)
    _sum_up(connection, outcomes_of_ids(connection, ids))
    delete_outcomes(connection, ids)


def _sum_up_decisions(connection: Connection, ids: Sequence[str]) -> None:
    """Sum up the errors of decisions that expire before their outcomes."""
    _sum_up(connection, outcomes_of_decisions(connection, ids))


def _sum_up(connection: Connection, rows: Sequence[JoinedOutcome]) -> None:
    add_expired(connection, monthly_errors(judge(rows)))
