"""The keeper's step that imports the data of `ioncast serve --demo`."""

from __future__ import annotations

import logging

from ioncast.service.background.keeper_progress import KeeperProgress
from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.prepared import IMPORTING, Writer, prepared_file
from ioncast.service.settings import Settings
from ioncast_base.clock import ClockCheck

_LOG = logging.getLogger("ioncast.keeper")


def let_import(settings: Settings) -> None:
    """Let the keeper import the demonstration's data; answers and pages say so until then."""
    writer = Writer(prepared_file(settings.state))
    try:
        with writer.transaction():
            writer.put_progress({IMPORTING: "the demonstration's data"})
    finally:
        writer.close()


class ImportStep:
    """Imports the demonstration's data, if the service was started for them."""

    def __init__(self, settings: Settings, file: StateFile, progress: KeeperProgress) -> None:
        self._database = settings.database
        self._file = file
        self._progress = progress

    def step(self, _clock: ClockCheck) -> None:
        """Import the data, unless an earlier keeper did."""
        # The progress is that of the open file.
        _ = self._file.writer
        if not self._progress.is_importing:
            return
        from ioncast.service.running.demo_data import fill  # noqa: PLC0415

        assert self._database is not None  # noqa: S101
        fill(self._database)
        self._progress.note_imported()
        _LOG.info("the demonstration's data are imported")
