"""Objects that answer schedulers' questions; all requests of a process share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from ioncast.service.decide.prepared import Reader
from ioncast.service.decide.spool import SpoolWriter
from ioncast.service.settings import Settings


class Counts(Protocol):
    """Counts what a process does; its failures reach no answer."""

    def answered(self, endpoint: str, status: int, began_s: float) -> None:
        """Count and time a request; `began_s` is a time of `time.perf_counter`."""

    def decided(self, source: str) -> None:
        """Count a decision by its source."""

    def could_not_record(self) -> None:
        """Count a decision that was answered but could not be stored."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources of a process that answers schedulers."""

    settings: Settings
    prepared: Reader
    spool: SpoolWriter
    counts: Counts
    limiter: FixedWindowRateLimiter = field(
        default_factory=lambda: FixedWindowRateLimiter(MemoryStorage())
    )

    @property
    def requests(self) -> RateLimitItemPerMinute:
        """The number of requests that a client may send in a minute."""
        return RateLimitItemPerMinute(self.settings.requests_per_minute)

    @property
    def wrong_tokens(self) -> RateLimitItemPerMinute:
        """The number of requests with a wrong token that a client may send in a minute."""
        return RateLimitItemPerMinute(max(self.settings.requests_per_minute // 10, 1))
