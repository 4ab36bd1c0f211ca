"""Objects that answer schedulers' questions; all requests of a process share them."""

from __future__ import annotations

from dataclasses import dataclass, field

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from ioncast.service.decide.counts import DecisionCounts
from ioncast.service.decide.prepared import Reader
from ioncast.service.decide.spool import SpoolWriter
from ioncast.service.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources of a process that answers schedulers."""

    settings: Settings
    prepared: Reader
    spool: SpoolWriter
    counts: DecisionCounts
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
