"""A table whose rows expire by age: all at once, or slowly while the clock may be wrong."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, Engine, Table, bindparam, select

from benchdb.store.database import transaction
from benchdb.store.stored_counters import count
from ioncast_base.clock import ClockCheck

# So much of a table may expire at once. If more has expired, so much may be deleted in an hour.
_PERCENT_AT_ONCE = 10
_PERCENT_AN_HOUR = 1
_HOUR_S = 3600.0
_BETWEEN_LINES_S = 24 * _HOUR_S
# An hour that is computed from two large numbers of seconds may be a little too short.
_ROUNDING = 1e-6

# A function that counts the rows from before a time.
CountOld = Callable[[Connection, datetime], int]
# A function that deletes some of them, at most so many, and returns their number.
DeleteOld = Callable[[Connection, datetime, int], int]

_LOG = logging.getLogger("ioncast.keeper")


@dataclass(frozen=True)
class Pace:
    """The pace of 1 % of a table in an hour.

    Attributes
    ----------
    since_s : float
        Seconds since boot; for the time before, all rows were deleted that may be.

    Examples
    --------
    One row of a hundred goes in an hour, and one of nine in eleven hours.

    >>> [Pace(0.0).most(100, 3600.0), Pace(0.0).most(9, 36_000.0), Pace(0.0).most(9, 40_000.0)]
    [1, 0, 1]
    >>> Pace(0.0).after(1, 100, 3600.0).most(100, 5400.0)
    0
    """

    since_s: float

    def most(self, rows: int, boot_s: float) -> int:
        """The number of rows that may be deleted now, of so many in the table."""
        return int((boot_s - self._begin_s(rows, boot_s)) / _per_row_s(rows) + _ROUNDING)

    def after(self, deleted: int, rows: int, boot_s: float) -> Pace:
        """The pace after rows were deleted."""
        return Pace(self._begin_s(rows, boot_s) + deleted * _per_row_s(rows))

    def _begin_s(self, rows: int, boot_s: float) -> float:
        # After a long pause no more may be deleted than in an hour, but one row of a small table.
        return max(self.since_s, boot_s - max(_HOUR_S, _per_row_s(rows)))


class ExpiringTable:
    """A table, and how long its rows stay.

    Parameters
    ----------
    table : Table
        The table.
    days : int
        How many days its rows stay.
    count_old, delete_old : callable
        As in `CountOld` and `DeleteOld`.
    """

    def __init__(self, table: Table, days: int, count_old: CountOld, delete_old: DeleteOld) -> None:
        self._name = table.name.replace("_", " ")
        self._rows = select(table.c.id).limit(bindparam("most"))
        self._stay = timedelta(days=days)
        self._count_old = count_old
        self._delete_old = delete_old
        self._pace: Pace | None = None
        self._deleted = 0
        self._told_s = -math.inf

    def expire(self, database: Engine, clock: ClockCheck) -> bool:
        """Delete some expired rows; False if no more may be deleted now."""
        first_kept = datetime.fromtimestamp(clock.wall_s, timezone.utc) - self._stay
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(database) as connection:
            expired = self._count_old(connection, first_kept)
            rows = count(connection, self._rows) if expired else 0
        most = self._most(expired, rows, clock)
        if not most:
            return False
        with transaction(database, write=True) as connection:
            deleted = self._delete_old(connection, first_kept, most)
        if self._pace is not None:
            self._pace = self._pace.after(deleted, rows, clock.boot_s)
            self._deleted += deleted
        return deleted > 0

    def _most(self, expired: int, rows: int, clock: ClockCheck) -> int:
        """The number of rows that may be deleted now."""
        is_little = 100 * expired <= _PERCENT_AT_ONCE * rows
        if not expired or (is_little and clock.is_steady):
            self._pace, self._deleted = None, 0
            return expired
        if self._pace is None:
            self._pace = Pace(clock.boot_s)
        most = min(expired, self._pace.most(rows, clock.boot_s))
        if most < expired and clock.boot_s >= self._told_s + _BETWEEN_LINES_S:
            self._told_s = clock.boot_s
            _LOG.warning(
                "%s: %d of %d have expired; %s, so at most %d %% are deleted in an hour"
                " (%d so far)",
                *(self._name, expired, rows),
                "the clock may be wrong" if is_little else "these are many",
                *(_PERCENT_AN_HOUR, self._deleted),
            )
        return most


def _per_row_s(rows: int) -> float:
    return _HOUR_S * 100 / _PERCENT_AN_HOUR / rows
