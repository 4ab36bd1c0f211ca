"""The keeper's step that deletes data which have expired."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

from sqlalchemy import Connection, Engine

from benchdb.history.deleting_runs import (
    count_old_outcomes,
    count_old_runs,
    delete_old_runs,
    delete_outcomes,
    forget_deleted,
    is_forgettable,
    old_outcomes,
)
from benchdb.history.expired_decisions import (
    BEGINNING,
    count_too_old,
    delete_least_useful,
    delete_too_old,
    takes_too_much,
)
from benchdb.history.kept_results import count_expired, forget_expired
from benchdb.history.outcomes import JoinedOutcome, outcomes_of_decisions, outcomes_of_ids
from benchdb.store.database import transaction
from benchdb.store.expired_errors import add_expired
from benchdb.store.schema import decisions, kept_results, outcomes, runs, writes
from benchdb.store.writes import count_old_writes, delete_old_writes
from ioncast.service.keeper.expiring_table import ExpiringTable
from ioncast.service.settings import Settings
from ioncast_base.clock import ClockCheck
from predictor.validation.decision_errors import judge
from predictor.validation.monthly_errors import monthly_errors

_BETWEEN_S = 60.0
# Decisions wait in the spool meanwhile.
_BUSY_S = 0.3
# Services that share the database see deleted runs within seconds, unless they are stopped.
_FORGET_AFTER_DAYS = 7

_LOG = logging.getLogger("ioncast.keeper")


class ExpiryStep:
    """Looks for expired data once a minute, and deletes them in short transactions.

    Nothing that was deleted comes back, and the wall clock may be wrong. After a jump of the wall
    clock nothing expires by age until the clock was steady for a day. `ExpiringTable` has the rule
    for all other times.

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
        # Tables with the days that their rows stay, 0 for ever.
        by_age = (
            (decisions, settings.keep_decisions_days, count_too_old, _delete_old_decisions),
            (runs, settings.keep_runs_days, count_old_runs, delete_old_runs),
            (outcomes, settings.keep_outcomes_days, count_old_outcomes, _delete_old_outcomes),
            (writes, settings.keep_runs_days, count_old_writes, delete_old_writes),
        )
        self._tables = [ExpiringTable(*each) for each in by_age if each[1]]
        # These rows have the time when they expire.
        self._tables.append(ExpiringTable(kept_results, 0, count_expired, forget_expired))
        self._place = BEGINNING
        self._next_s = -math.inf
        self._is_stopped = False

    def step(self, clock: ClockCheck) -> None:
        """Delete for a part of a second; go on the next time if more is left."""
        self._stop_after_jump(clock)
        if clock.boot_s < self._next_s:
            return
        give_up_at = time.monotonic() + _BUSY_S
        for delete_some in self._works(clock):
            while delete_some():
                if time.monotonic() > give_up_at:
                    return
        self._next_s = clock.boot_s + _BETWEEN_S

    def _stop_after_jump(self, clock: ClockCheck) -> None:
        was_stopped, self._is_stopped = self._is_stopped, clock.has_jumped and not clock.is_steady
        if self._is_stopped and not was_stopped:
            _LOG.warning(
                "the clock jumped, to %s UTC: nothing expires until it was steady for a day",
                f"{_moment(clock):%Y-%m-%d %H:%M:%S}",
            )
        elif was_stopped and not self._is_stopped:
            _LOG.info("the clock was steady for a day: data expire again")

    def _works(self, clock: ClockCheck) -> Iterator[Callable[[], bool]]:
        """Yield functions that delete some expired data, and return False if none are left."""
        if not self._is_stopped:
            for table in self._tables:
                yield partial(table.expire, self._database, clock)
        # A service that missed one of these prepares all answers again, so nothing is lost.
        yield partial(self._forget_deleted, _moment(clock) - timedelta(days=_FORGET_AFTER_DAYS))
        if self._most_bytes:
            yield self._shrink

    def _forget_deleted(self, first_kept: datetime) -> bool:
        """Forget runs that were deleted before a time."""
        if found := self._finds(partial(is_forgettable, first_kept=first_kept)):
            with transaction(self._database, write=True) as connection:
                forget_deleted(connection, first_kept)
        return found

    def _shrink(self) -> bool:
        """Delete decisions that take too much space."""
        if found := self._finds(partial(takes_too_much, most_bytes=self._most_bytes)):
            with transaction(self._database, write=True) as connection:
                place = delete_least_useful(
                    connection, self._most_bytes, self._place, _sum_up_decisions
                )
            # The rows are back if the commit failed.
            self._place = place
        return found

    def _finds(self, look: Callable[[Connection], bool]) -> bool:
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(self._database) as connection:
            return look(connection)


def _moment(clock: ClockCheck) -> datetime:
    return datetime.fromtimestamp(clock.wall_s, timezone.utc)


def _delete_old_decisions(connection: Connection, first_kept: datetime, most: int) -> int:
    return delete_too_old(connection, first_kept, _sum_up_decisions, most)


def _delete_old_outcomes(connection: Connection, first_kept: datetime, most: int) -> int:
    ids = old_outcomes(connection, first_kept, most)
    _sum_up(connection, outcomes_of_ids(connection, ids))
    delete_outcomes(connection, ids)
    return len(ids)


def _sum_up_decisions(connection: Connection, ids: Sequence[str]) -> None:
    """Sum up the errors of decisions that expire before their outcomes."""
    _sum_up(connection, outcomes_of_decisions(connection, ids))


def _sum_up(connection: Connection, rows: Sequence[JoinedOutcome]) -> None:
    add_expired(connection, monthly_errors(judge(rows)))
