"""The keeper's step for the state folder."""

from __future__ import annotations

from ioncast.service.decide.spool import check_writable, spool_folder
from ioncast_base.clock import ClockCheck
from ioncast_base.errors import BusyError


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
