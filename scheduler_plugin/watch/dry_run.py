"""A receiver for dry runs: it checks the service and only says which logs would be sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO

from ioncast_base.visible_text import visible
from scheduler_plugin.service_client import Ioncast, RunOf


class DryReceiver:
    """Describes each log instead of sending it.

    Parameters
    ----------
    service : Ioncast
        Client of the service.
    say : callable
        Prints a line.
    """

    def __init__(self, service: Ioncast, say: Callable[[str], object]) -> None:
        self._service = service
        self._say = say

    def measured_systems(self) -> list[str]:
        """Ask the service, which rejects a wrong token."""
        return self._service.measured_systems()

    def send_trace(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Describe a trace."""
        return self._describe("trace", log, file_name, run)

    def send_outcome(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Describe an outcome."""
        return self._describe("outcome", log, file_name, run)

    def _describe(self, kind: str, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        known = " ".join(
            f"{name}={visible(value)}" for name, value in vars(run).items() if value is not None
        )
        self._say(f"would send {kind} {visible(file_name)}: {known}")
        # Only the service can tell how many bytes the job moved. The size of the log stands in: a
        # larger log mostly means more bytes.
        return {"bytes": os.fstat(log.fileno()).st_size}
