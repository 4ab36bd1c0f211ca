"""The keeper's step that removes the files of uploads whose worker was killed."""

from __future__ import annotations

import math

from ioncast.service.sandbox.upload_folders import remove_leftovers
from ioncast_base.clock import ClockCheck

_BETWEEN_S = 10.0


class UploadStep:
    """Removes what killed workers left in the folder for temporary files."""

    def __init__(self) -> None:
        self._next_s = -math.inf

    def step(self, clock: ClockCheck) -> None:
        """Look for such files each ten seconds."""
        if clock.boot_s >= self._next_s:
            remove_leftovers()
            self._next_s = clock.boot_s + _BETWEEN_S
