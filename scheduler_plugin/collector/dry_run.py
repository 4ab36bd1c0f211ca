"""A receiver for dry runs: it checks the service and only says which logs would be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ioncast_base.visible_text import visible
from scheduler_plugin.service_client import Ioncast, NamedLog, RunOf


class DryReceiver:
    """Describes the logs of each run instead of sending them."""

    def __init__(self, service: Ioncast, say: Callable[[str], object]) -> None:
        self._service = service
        self._say = say

    def measured_systems(self) -> list[str]:
        """Ask the service, which rejects a wrong token."""
        return self._service.measured_systems()

    def send_trace(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Describe a trace."""
        return self._describe("trace", logs, run)

    def send_outcome(self, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        """Describe an outcome."""
        return self._describe("outcome", logs, run)

    def send_queue(self, report: Mapping[str, Any]) -> None:
        """Describe the queue."""
        self._say(f"would send the queue: {_known(report)}")

    def _describe(self, kind: str, logs: Sequence[NamedLog], run: RunOf) -> dict[str, Any]:
        known = _known(vars(run))
        names = " ".join(visible(log.name) for log in logs)
        self._say(f"would send {kind} {names}: {known}")
        # Only the service can tell how many bytes the job moved. The size of the log stands in: a
        # larger log mostly means more bytes.
        return {"bytes": sum(len(log.copy.getbuffer()) for log in logs)}


def _known(facts: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={visible(value)}" for name, value in facts.items() if value is not None
    )
