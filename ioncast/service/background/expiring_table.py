"""A table whose rows expire by age: all at once, or slowly while the clock may be wrong."""

from __future__ import annotations

import logging
import math
from datetime import datetime, timedelta, timezone

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.expiring import Expiring
from ioncast_base.clock import ClockCheck

# So much of a table may expire at once. If more has expired, so much is deleted in an hour.
_PERCENT_AT_ONCE = 10
_PERCENT_AN_HOUR = 1
_HOUR_S = 3600.0
_BETWEEN_LINES_S = 24 * _HOUR_S

_LOG = logging.getLogger("ioncast.keeper")


class ExpiringTable:
    """A table, and how long its rows stay."""

    def __init__(self, rows: Expiring, days: int) -> None:
        self._rows = rows
        self._stay = timedelta(days=days)
        # While few rows may go: seconds since boot from which more may go, and how many until then.
        self._more_at_s: float | None = None
        self._may_go = 0
        self._told_s = -math.inf

    def expire(self, database: Engine, clock: ClockCheck) -> bool:
        """Delete some expired rows; False if no more may be deleted now."""
        first_kept = datetime.fromtimestamp(clock.wall_s, timezone.utc) - self._stay
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(database) as connection:
            expired, rows = self._rows.count(connection, first_kept)
        most = self._most(expired, rows, clock)
        if not most:
            return False
        with transaction(database, write=True) as connection:
            deleted = self._rows.delete_old(connection, first_kept, most)
        self._may_go -= deleted
        return deleted > 0

    def _most(self, expired: int, rows: int, clock: ClockCheck) -> int:
        """The number of rows that may be deleted now."""
        is_little = 100 * expired <= _PERCENT_AT_ONCE * rows
        if not expired or (is_little and clock.is_steady):
            self._more_at_s = None
            return expired
        if self._more_at_s is None:
            self._more_at_s, self._may_go = clock.boot_s + _HOUR_S, 0
        elif clock.boot_s >= self._more_at_s:
            self._more_at_s = clock.boot_s + _HOUR_S
            self._may_go = max(1, rows * _PERCENT_AN_HOUR // 100)
        if clock.boot_s >= self._told_s + _BETWEEN_LINES_S:
            self._told_s = clock.boot_s
            _LOG.warning(
                "%s: %d of %d have expired; %s, so at most %d %% are deleted in an hour",
                *(self._rows.table.name.replace("_", " "), expired, rows),
                "the clock may be wrong" if is_little else "these are many",
                _PERCENT_AN_HOUR,
            )
        return min(expired, self._may_go)
