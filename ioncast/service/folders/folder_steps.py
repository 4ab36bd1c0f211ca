"""The keeper's steps for folders: the state folder, and what killed workers left."""

from __future__ import annotations

import math

from ioncast.service.decide.spool import check_writable, spool_folder
from ioncast.service.folders.locked_folders import remove_leftovers
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import BusyError

_BETWEEN_S = 10.0


class StateFolderStep:
    """Finds out whether decisions can be written to the state folder; its spool may be a link."""

    def __init__(self, state: str) -> None:
        self._spool = spool_folder(state)
        self.is_writable = True

    def step(self, _clock: ClockCheck) -> None:
        """Write to the folder."""
        self.is_writable = False
        try:
            check_writable(self._spool.resolve().parent)
        except OSError as error:
            raise BusyError(f"the state folder cannot be written: {error.strerror}") from error
        self.is_writable = True


class UploadStep:
    """Removes what killed workers left in the folder for temporary files."""

    def __init__(self) -> None:
        self._next_s = -math.inf

    def step(self, clock: ClockCheck) -> None:
        """Look for such files each ten seconds."""
        if clock.boot_s >= self._next_s:
            remove_leftovers()
            self._next_s = clock.boot_s + _BETWEEN_S
