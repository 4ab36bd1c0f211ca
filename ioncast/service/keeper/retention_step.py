"""The keeper's step that deletes decisions which have expired."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, Engine

from benchdb.history.expired_decisions import (
    BEGINNING,
    delete_least_useful,
    delete_too_old,
    has_too_old,
    takes_too_much,
)
from benchdb.store.database import transaction
from ioncast.service.settings import Settings

_BETWEEN_S = 60.0
# Decisions wait in the spool meanwhile.
_BUSY_S = 0.3


class RetentionStep:
    """Looks for expired decisions once a minute, and deletes them in short transactions.

    Parameters
    ----------
    settings : Settings
        How long decisions stay, and how much space they may take.
    database : Engine
        The database.
    """

    def __init__(self, settings: Settings, database: Engine) -> None:
        self._settings = settings
        self._database = database
        self._place = BEGINNING
        self._next_s = -math.inf

    def step(self, now_s: float) -> None:
        """Delete for a part of a second; go on the next time if more is left."""
        if now_s < self._next_s:
            return
        give_up_at = time.monotonic() + _BUSY_S
        while self._has_more(now_s):
            with transaction(self._database, write=True) as connection:
                self._delete(connection, now_s)
            if time.monotonic() > give_up_at:
                return
        self._next_s = now_s + _BETWEEN_S

    def _has_more(self, now_s: float) -> bool:
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(self._database) as connection:
            return self._has_too_old(connection, now_s) or self._is_too_much(connection)

    def _delete(self, connection: Connection, now_s: float) -> None:
        if self._has_too_old(connection, now_s):
            delete_too_old(connection, self._first_kept(now_s))
        else:
            self._place = delete_least_useful(connection, self._most_bytes, self._place)

    def _has_too_old(self, connection: Connection, now_s: float) -> bool:
        is_limited = self._settings.keep_decisions_days > 0
        return is_limited and has_too_old(connection, self._first_kept(now_s))

    def _is_too_much(self, connection: Connection) -> bool:
        is_limited = self._settings.keep_decisions_mib > 0
        return is_limited and takes_too_much(connection, self._most_bytes)

    def _first_kept(self, now_s: float) -> datetime:
        now = datetime.fromtimestamp(now_s, timezone.utc)
        return now - timedelta(days=self._settings.keep_decisions_days)

    @property
    def _most_bytes(self) -> int:
        return self._settings.keep_decisions_mib << 20
