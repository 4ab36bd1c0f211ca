"""Objects that all requests of one worker share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from flask import current_app
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from sqlalchemy import Engine

from ioncast.insights.checks.values import Thresholds
from ioncast.service.answering.prepared import Reader
from ioncast.service.answering.spool import SpoolWriter
from ioncast.service.sandbox.child import Children
from ioncast.service.settings import Settings

_NAME = "ioncast"


@dataclass(frozen=True)
class Service:
    """The settings and resources of one application.

    Attributes
    ----------
    settings : Settings
        The site's settings.
    database : Engine
        Opened for each request; see `benchdb.store.database.existing_database`.
    prepared : Reader
        Prepared answers, tokens and summaries.
    spool : SpoolWriter
        Writes the decisions.
    children : Children
        Reads uploads, predicts and does other slow work, in separate processes.
    thresholds : Thresholds
        The numbers that checks of logs compare with.
    limiter : FixedWindowRateLimiter
        Counts the requests of each client.
    """

    settings: Settings
    database: Engine
    prepared: Reader
    spool: SpoolWriter
    children: Children
    thresholds: Thresholds
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


def install(extensions: dict[str, object], service: Service) -> None:
    """Attach a service to an application, so that requests find it."""
    extensions[_NAME] = service


def service() -> Service:
    """Return the service of the application that is answering."""
    return cast("Service", current_app.extensions[_NAME])
