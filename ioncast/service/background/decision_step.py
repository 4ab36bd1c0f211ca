"""The keeper's step that moves decisions from the spool into the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.background.draining import Drain
from ioncast.service.background.wanted_sizes import WantedSizes
from ioncast.service.store.decisions import store_decisions
from ioncast.service.store.drained_spools import drained_places, note_drained
from ioncast_base.clock import ClockCheck

_LOG = logging.getLogger("ioncast.keeper")


class DecisionStep:
    """Stores decisions, and notes the sizes of jobs that no prepared answer was for."""

    def __init__(
        self,
        database: Engine,
        spool: Path,
        wanted: WantedSizes,
        pend: Callable[[Iterable[int]], None],
    ) -> None:
        self._database = database
        self._spool = spool
        self._drain: Drain | None = None
        self._wanted = wanted
        self._pend = pend

    def step(self, clock: ClockCheck) -> None:
        """Store the decisions that workers appended since the last time."""
        if self._drain is None:
            # A decision that has expired since it was stored must not be stored again.
            with transaction(self._database) as connection:
                self._drain = Drain(self._spool, drained_places(connection))
        with self._drain.batch(clock.wall_s) as batch:
            if batch.rows:
                with transaction(self._database, write=True) as connection:
                    store_decisions(connection, batch.rows)
                    note_drained(connection, batch.places, batch.gone)
        for line in batch.unusable:
            _LOG.warning("a line of the spool is not a decision: %s", line)
        if new := self._wanted.add(batch.rows):
            self._pend(new)
