"""The keeper's step that deletes kept results that have expired."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from sqlalchemy import Engine

from benchdb.history.kept_results import forget_expired, has_expired
from benchdb.store.database import transaction

_BETWEEN_S = 60.0


class ExpiryStep:
    """Deletes expired results once a minute.

    Parameters
    ----------
    database : Engine
        The database.
    """

    def __init__(self, database: Engine) -> None:
        self._database = database
        self._looked_at_s = -math.inf

    def step(self, now_s: float) -> None:
        """Look for expired results if a minute has passed, and delete them."""
        if now_s < self._looked_at_s + _BETWEEN_S:
            return
        now = datetime.fromtimestamp(now_s, timezone.utc)
        # A transaction that writes would fail on a read-only database, where nothing is wrong.
        with transaction(self._database) as connection:
            is_needed = has_expired(connection, now)
        if is_needed:
            with transaction(self._database, write=True) as connection:
                forget_expired(connection, now)
        self._looked_at_s = now_s
