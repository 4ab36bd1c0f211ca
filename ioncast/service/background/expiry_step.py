"""The keeper's step that deletes data which have expired."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.background.expiring_table import ExpiringTable
from ioncast.service.settings import Settings
from ioncast.service.store.deleting_runs import forget_deleted, is_forgettable
from ioncast.service.store.expiring import (
    DECISIONS,
    KEPT_RESULTS,
    OUTCOMES,
    QUEUE_REPORTS,
    RUNS,
)
from ioncast_base.clock import ClockCheck

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
    """

    def __init__(self, settings: Settings, database: Engine) -> None:
        self._database = database
        by_age = (
            (DECISIONS, settings.keep_decisions_days),
            (QUEUE_REPORTS, settings.keep_decisions_days),
            (RUNS, settings.keep_runs_days),
            (OUTCOMES, settings.keep_outcomes_days),
        )
        # Rows without a number of days stay for ever; a kept result has the time when it expires.
        self._tables = [ExpiringTable(rows, days) for rows, days in by_age if days]
        self._tables.append(ExpiringTable(KEPT_RESULTS, 0))
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

    def _forget_deleted(self, first_kept: datetime) -> bool:
        """Forget runs that were deleted before a time."""
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(self._database) as connection:
            if not is_forgettable(connection, first_kept):
                return False
        with transaction(self._database, write=True) as connection:
            forget_deleted(connection, first_kept)
        return True


def _moment(clock: ClockCheck) -> datetime:
    return datetime.fromtimestamp(clock.wall_s, timezone.utc)
