"""The keeper: one process beside those that answer, which does all slow work.

`ioncast serve` starts it and writes the settings to its standard input. Each second it moves
decisions into the database and prepares answers for changes in the database. While the database
is locked, missing or read-only, the keeper waits.
"""

from __future__ import annotations

import logging
import signal
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from math import inf
from types import FrameType
from typing import Protocol

from benchdb.store.database import existing_database
from ioncast.service.background.answer_step import AnswerStep
from ioncast.service.background.copying_steps import PauseStep, TokenStep
from ioncast.service.background.decision_step import DecisionStep
from ioncast.service.background.evidence_step import EvidenceStep
from ioncast.service.background.expiry_step import ExpiryStep
from ioncast.service.background.keeper_progress import KeeperProgress
from ioncast.service.background.state_file import StateFile
from ioncast.service.background.summary_step import SummaryStep
from ioncast.service.background.wanted_sizes import WantedSizes
from ioncast.service.decide.spool import spool_folder
from ioncast.service.folders.folder_steps import StateFolderStep
from ioncast.service.folders.usable_state import state_of_keeper
from ioncast.service.running.supervisor import NICENESS, begin
from ioncast.service.settings import Settings
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import DatabaseError, IoncastError

_PERIOD_S = 1.0
# A keeper that prepares without a pause would keep others from writing to SQLite.
_PAUSE_S = 0.2
_PATIENCE_S = 2.0
# A disk on which there is hardly any room must not let one keeper follow another all the time.
_BEFORE_RETURN_S = 10.0
# PostgreSQL may work so long on a statement of the keeper before it sends the first row.
_SILENCE_S = 8.0

_LOG = logging.getLogger("ioncast.keeper")


class Step(Protocol):
    """A part of the keeper's work, with its own state."""

    def step(self, clock: ClockCheck) -> None:
        """Do the next part of the work."""


class Keeper:
    """Attempts each step once a second; one keeper is enough for a state folder."""

    def __init__(self, settings: Settings) -> None:
        self.is_stopping = False
        self._database = existing_database(
            settings.database, patience_s=_PATIENCE_S, silence_s=_SILENCE_S
        )
        self._file = StateFile(settings)
        # Each failure is logged when it begins and when it ends.
        self._failing: set[str] = set()
        self._clock: ClockCheck | None = None
        self._state_folder = StateFolderStep(settings.state)
        progress, wanted = KeeperProgress(self._file), WantedSizes(self._file)
        self._answers = AnswerStep(
            settings, self._database, self._file, progress, wanted, lambda: self.is_stopping
        )
        # The keys are logged when a step begins to fail and when it works again.
        self._steps: dict[str, Step] = {
            "tokens are not copied": TokenStep(self._database, self._file),
            "pauses of decisions are not copied": PauseStep(self._database, self._file),
            "answers are not prepared": self._answers,
            "decisions wait for the database": DecisionStep(
                self._database, spool_folder(settings.state), wanted, self._answers.pend
            ),
            "summaries are not made": SummaryStep(settings, self._database, self._file, progress),
            "evidence from servers is not looked up": EvidenceStep(settings, self._database),
            "expired data are not deleted": ExpiryStep(settings, self._database),
            "decisions are not recorded": self._state_folder,
        }

    @property
    def is_behind(self) -> bool:
        """Whether applications wait to be prepared."""
        return self._answers.is_behind

    @property
    def can_write(self) -> bool:
        """Whether the state folder could be written in the last round."""
        return self._state_folder.is_writable

    def round(self, wall_s: float, boot_s: float) -> None:
        """Attempt each step once, then write the heartbeat; no failure ends the keeper."""
        begun = self._clock or ClockCheck.begin(wall_s, boot_s)
        self._clock = clock = begun.step(wall_s, boot_s)
        self._file.close_if_lost()
        database_ok = True
        for failure, step in self._steps.items():
            if not self.is_stopping:
                database_ok &= self._attempt(failure, partial(step.step, clock))
                if not database_ok:
                    # The other steps may each wait for the database, so say it before them.
                    self._tell(wall_s, database_ok=False)
        self._tell(wall_s, database_ok=database_ok)

    def close(self) -> None:
        """Close the database and the file."""
        self._database.dispose()
        self._file.close()

    def _attempt(self, failure: str, work: Callable[[], None]) -> bool:
        """Attempt some work; False if the database failed."""
        try:
            work()
        except Exception as error:
            if isinstance(error, sqlite3.Error | OSError):
                self._file.close()
            if failure not in self._failing:
                self._failing.add(failure)
                kind = "" if isinstance(error, IoncastError) else f"{type(error).__name__}: "
                _LOG.error("%s: %s%s", failure, kind, error)
            return not isinstance(error, DatabaseError)
        if failure in self._failing:
            self._failing.remove(failure)
            _LOG.info("no longer true: %s", failure)
        return True

    def _tell(self, now_s: float, *, database_ok: bool) -> None:
        self._attempt("the state folder cannot be used", partial(self._beat, now_s, database_ok))

    def _beat(self, now_s: float, database_ok: bool) -> None:
        """Write the heartbeat, by which workers know that the keeper runs."""
        writer = self._file.writer
        with writer.transaction():
            writer.beat(now_s, database_ok=database_ok, state_ok=self._state_folder.is_writable)


def keep(settings: Settings) -> None:
    """Work until a signal asks to end, or the given state folder can be written again."""
    state = state_of_keeper(settings.state)
    keeper = Keeper(settings.model_copy(update={"state": state}))
    _end_on_signals(keeper)
    returns_s = inf if state == settings.state else time.monotonic() + _BEFORE_RETURN_S
    while not keeper.is_stopping:
        if time.monotonic() > returns_s and keeper.can_write:
            _LOG.info("the state folder can be written again: the next keeper uses it")
            break
        next_s = time.monotonic() + _PERIOD_S
        keeper.round(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
        time.sleep(_PAUSE_S)
        while not (keeper.is_behind or keeper.is_stopping) and time.monotonic() < next_s:
            time.sleep(_PAUSE_S)
    keeper.close()


def _end_on_signals(keeper: Keeper) -> None:
    """Note SIGTERM and SIGINT, of which several may come.

    A threading.Event would be set under a lock, which the interrupted code or the handler of an
    earlier signal may hold already.
    """

    def end(_signal: int, _frame: FrameType | None) -> None:
        keeper.is_stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def main() -> None:
    """Run the process."""
    keep(begin(Settings, niceness=NICENESS))


if __name__ == "__main__":
    main()
