"""The keeper's step that sums the database up for the pages: outcomes and coverage."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import asdict
from datetime import datetime, timezone

from sqlalchemy import Connection, Engine

from benchdb.measurements.coverage import STALE_AFTER_S
from benchdb.measurements.curves import measured
from benchdb.store.database import transaction
from benchdb.store.system_changes import changes
from benchdb.store.systems import system_names
from ioncast.service.background.counting import Count
from ioncast.service.background.keeper_progress import KeeperProgress
from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.prepared import Writer
from ioncast.service.monitoring.common_shift import common_shifts, shifts_to_json
from ioncast.service.monitoring.decision_errors import (
    COUNTED,
    drift,
    errors_so_far,
    errors_to_json,
)
from ioncast.service.monitoring.gain import gains
from ioncast.service.monitoring.missing_kinds import missing_kinds
from ioncast.service.monitoring.monthly_errors import monthly_errors
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES, newest_slow_io_nodes
from ioncast.service.settings import Settings
from ioncast.service.store.deleting_runs import last_deleted
from ioncast.service.store.outcomes import newest_ids, newest_outcomes
from ioncast.service.store.revisions import newest
from ioncast_base.clock import ClockCheck
from predictor.matching.nearest import kinds_of

_BETWEEN_SUMMARIES_S = 60.0
# Counting all cells of a large system takes many seconds, in which the other steps would wait.
_COUNTING_S = 0.3
# Applications of a system that are named because they may try another number of I/O nodes.
_MOST_NAMED = 10


class SummaryStep:
    """Writes summaries into the state file, once a minute if anything changed."""

    def __init__(
        self, settings: Settings, database: Engine, file: StateFile, progress: KeeperProgress
    ) -> None:
        self._database = database
        self._file = file
        self._outcomes = _Outcomes(settings)
        self._coverage = _Coverage(progress)
        self._summed_up_at_s = -math.inf
        self._missing: list[dict[str, object]] | None = None
        file.when_opened(self._begin)

    def step(self, clock: ClockCheck) -> None:
        """Sum outcomes up if a minute has passed, and count cells for a while."""
        if clock.boot_s >= self._summed_up_at_s + _BETWEEN_SUMMARIES_S:
            with transaction(self._database) as connection:
                self._put(self._outcomes.summaries(connection, _moment(clock.wall_s)), clock.wall_s)
                self._coverage.begin_counting(connection, clock.wall_s)
                missing = missing_kinds(connection, self._coverage.kinds)
            if missing != self._missing:
                self._put({"missing kinds": missing}, clock.wall_s)
                self._missing = missing
            self._summed_up_at_s = clock.boot_s
        self._put_untried(clock.wall_s)
        if self._coverage.is_counting:
            with transaction(self._database) as connection:
                self._coverage.count(connection)
            if not self._coverage.is_counting:
                self._put({"coverage": self._coverage.summary()}, clock.wall_s)

    def _begin(self, _writer: Writer) -> None:
        self._summed_up_at_s, self._missing = -math.inf, None
        self._outcomes.forget()
        self._coverage.forget()

    def _put_untried(self, now_s: float) -> None:
        """Count the applications with a number to try, by system, if any of them changed.

        The largest gains have the ids of their applications, whose names may be deleted any time.
        """
        found = self._file.writer.new_untried()
        if found is None:
            return
        by_system: dict[str, list[dict[str, object]]] = defaultdict(list)
        for application_id, system, untried in found:
            by_system[system].append({"id": application_id, **untried._asdict()})
        counted = {
            system: {"number": len(of_system), "largest": of_system[:_MOST_NAMED]}
            for system, of_system in by_system.items()
        }
        self._put({"untried": counted}, now_s)

    def _put(self, summaries: dict[str, object], now_s: float) -> None:
        at = _moment(now_s).isoformat(timespec="seconds")
        writer = self._file.writer
        with writer.transaction():
            for name, value in summaries.items():
                writer.put_summary(name, value, at)


class _Outcomes:
    """Errors of predictions and drift, made again when outcomes come or go."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # The newest change of an outcome, the last deleted run, the newest outcomes, the changes
        # of systems, and the day: slow I/O nodes are those of the last weeks.
        self._judged: tuple[object, ...] | None = None

    def forget(self) -> None:
        """Make the summaries again the next time."""
        self._judged = None

    def _default_of(self, system: str) -> int | None:
        return self._settings.of_system(system).default_io_nodes

    def summaries(self, connection: Connection, at: datetime) -> dict[str, object]:
        """Make the summaries, once a day and if anything came, went or expired; else empty."""
        ids = newest_ids(connection, COUNTED)
        noted = changes(connection)
        found = newest(connection)[1], last_deleted(connection), ids, noted, at.date()
        if found == self._judged:
            return {}
        rows = newest_outcomes(connection, limit=COUNTED)
        self._judged = found
        errors = errors_so_far(rows)
        return {
            "validation": errors_to_json(errors),
            "months": monthly_errors((*errors.judged, *errors.before_change)),
            "gains": [asdict(each) for each in gains(rows, self._default_of)],
            "drift": [asdict(each) for each in drift(rows)],
            "shifts": shifts_to_json(common_shifts(rows)),
            SLOW_IO_NODES: [asdict(each) for each in newest_slow_io_nodes(connection, noted, at)],
        }


class _Coverage:
    """The coverage of each system, counted again when its measurements change.

    Attributes
    ----------
    kinds : dict of str to set of str
        The kinds of I/O of the benchmarks of each system that was counted.
    """

    def __init__(self, progress: KeeperProgress) -> None:
        self._progress = progress
        # By system: the fingerprint of its measurements, and its summary or its count so far.
        self._counted: dict[str, tuple[str, dict[str, object]]] = {}
        self._counting: dict[str, tuple[str, Count]] = {}
        self.kinds: dict[str, set[str]] = {}

    @property
    def is_counting(self) -> bool:
        """Whether a system's cells are not all counted."""
        return bool(self._counting)

    def forget(self) -> None:
        """Count all systems again the next time."""
        self._counted, self._counting, self.kinds = {}, {}, {}

    def begin_counting(self, connection: Connection, now_s: float) -> None:
        """Begin to count systems whose measurements changed since they were counted."""
        bases = {name: self._progress.bases.get(name, "") for name in system_names(connection)}
        for system, basis in bases.items():
            if system not in self._counting and self._counted.get(system, ("",))[0] != basis:
                self._counting[system] = basis, Count(system, _moment(now_s), STALE_AFTER_S)
        for system in self._counted.keys() - bases:
            del self._counted[system]
            self.kinds.pop(system, None)

    def count(self, connection: Connection) -> None:
        """Go on counting, for a part of a second."""
        give_up_at = time.monotonic() + _COUNTING_S
        while self._counting and time.monotonic() < give_up_at:
            system, (basis, count) = next(iter(self._counting.items()))
            if count.read_page(connection):
                continue
            self._counted[system] = basis, {"system": system, **asdict(count.summary())}
            self.kinds[system] = set(map(str, kinds_of(measured(connection, system))))
            del self._counting[system]

    def summary(self) -> list[dict[str, object]]:
        """The coverage of all systems, by name."""
        return [summary for _, (_, summary) in sorted(self._counted.items())]


def _moment(now_s: float) -> datetime:
    return datetime.fromtimestamp(now_s, timezone.utc)
