"""The keeper's step that asks the site's store how much servers explain of slow runs."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.settings import Settings
from ioncast.service.store.runs import RecentLog, logs_since, note_scatter
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import DatabaseError, InputError
from ioncast_base.times import in_utc

if TYPE_CHECKING:
    from ioncast.warehouse.engine import Ask

_BETWEEN_S = 60.0
# Servers' logs come days after the logs of runs. Older runs keep what is known of them.
_RECENT, _MOST_LOGS = timedelta(days=14), 10_000
_SECONDS, _MEMORY_MIB, _MOST_ROWS = 60.0, 512, 500_000
# A smaller change of a run's noise moves no expectation.
_LEAST_CHANGE = 0.001

_LOG = logging.getLogger("ioncast.keeper")


class EvidenceStep:
    """Finds the evidence about recent runs once, and again after each change of the store.

    Asking takes seconds, so it is done in a thread, in which the keeper's other steps go on.
    """

    def __init__(self, settings: Settings, database: Engine) -> None:
        self._folder = None if settings.store is None else Path(settings.store)
        self._database = database
        self._thread: threading.Thread | None = None
        self._next_s = -inf
        # The bundles of the store, and the logs that were looked up in them.
        self._bundles: frozenset[str] = frozenset()
        self._known: set[str] = set()

    def step(self, clock: ClockCheck) -> None:
        """Begin to ask the store once a minute, unless it is being asked."""
        is_working = self._thread is not None and self._thread.is_alive()
        if self._folder is None or is_working or clock.boot_s < self._next_s:
            return
        self._next_s = clock.boot_s + _BETWEEN_S
        self._thread = threading.Thread(target=self.ask, args=(clock.wall_s,), daemon=True)
        self._thread.start()

    def ask(self, now_s: float) -> None:
        """Store the evidence about recent runs that were not looked up in these bundles."""
        try:
            self._ask(now_s)
        except DatabaseError:
            # The keeper's steps report that the database is away.
            return
        except InputError as error:
            _LOG.warning("no evidence from servers: %s", error)
        except Exception:
            _LOG.exception("evidence from servers is not looked up")

    def _ask(self, now_s: float) -> None:
        if self._folder is None:
            return
        bundles = frozenset(each.name for each in self._folder.glob("bundle=*"))
        if bundles != self._bundles:
            self._bundles, self._known = bundles, set()
        if not any(self._folder.glob("bundle=*/server_samples.parquet")):
            # Most stores have no samples, so there is nothing to find.
            return
        since = in_utc(datetime.fromtimestamp(now_s, timezone.utc) - _RECENT)
        with transaction(self._database) as connection:
            recent = logs_since(connection, since, _MOST_LOGS)
        self._known &= {log.sha256 for log in recent}
        by_program: dict[str, list[RecentLog]] = defaultdict(list)
        for log in recent:
            by_program[log.program].append(log)
        self._look_up(
            self._folder,
            [logs for logs in by_program.values() if {log.sha256 for log in logs} - self._known],
        )

    def _look_up(self, folder: Path, programs: Sequence[Sequence[RecentLog]]) -> None:
        """Ask the store about the logs of programs; the time limit is that of all together."""
        if not programs:
            return
        # Without a store the service does without these libraries.
        from ioncast.warehouse.engine import EngineLimits, all_rows, asking  # noqa: PLC0415

        limits = EngineLimits(_SECONDS, _MEMORY_MIB, threads=1, rows=_MOST_ROWS + 1)
        with asking(folder, limits=limits) as engine:
            ask = all_rows(engine, _MOST_ROWS)
            for logs in programs:
                program, digests = logs[0].program, {log.sha256 for log in logs} - self._known
                # A program that needs too much is not asked for again; the others are, next time.
                self._known |= digests
                try:
                    scatters = self._scatters(ask, program, digests)
                except InputError as error:
                    _LOG.warning("no evidence from servers about runs of %r: %s", program, error)
                    return
                self._note(logs, scatters)

    def _scatters(self, ask: Ask, program: str, digests: set[str]) -> dict[str, float]:
        from ioncast.diagnosis.stored_runs import outcome_scatters  # noqa: PLC0415

        return outcome_scatters(ask, program, digests)

    def _note(self, logs: Sequence[RecentLog], scatters: dict[str, float]) -> None:
        """Store what changed; of several logs of a run, the largest scatter counts."""
        stored = {log.run_id: log.outcome_scatter for log in logs}
        found: dict[int, float] = {}
        for log in logs:
            if (scatter := scatters.get(log.sha256)) is not None:
                found[log.run_id] = max(found.get(log.run_id, 0.0), scatter)
        changed = {
            run_id: scatter
            for run_id, scatter in found.items()
            if abs(scatter - stored[run_id]) >= _LEAST_CHANGE
        }
        if changed:
            with transaction(self._database, write=True) as connection:
                for run_id, scatter in changed.items():
                    note_scatter(connection, run_id, scatter)
