"""What the requests of one worker share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from flask import current_app
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from sqlalchemy import Engine

from ioncast.service.answering.prepared import Reader
from ioncast.service.answering.spool import SpoolWriter
from ioncast.service.sandbox.child import Children
from ioncast.service.settings import Settings

_NAME = "ioncast"


@dataclass(frozen=True)
class Service:
    """One application's settings and what it holds open.

    Attributes
    ----------
    settings : Settings
        The site's.
    database : Engine
        Opened for each request; see `benchdb.store.database.existing_database`.
    prepared : Reader
        Prepared answers, tokens and summaries.
    spool : SpoolWriter
        Where decisions go.
    children : Children
        Reads uploads, predicts and does what else takes long, in processes of their own.
    limiter : FixedWindowRateLimiter
        Counts requests of clients.
    """

    settings: Settings
    database: Engine
    prepared: Reader
    spool: SpoolWriter
    children: Children
    limiter: FixedWindowRateLimiter = field(
        default_factory=lambda: FixedWindowRateLimiter(MemoryStorage())
    )

    @property
    def requests(self) -> RateLimitItemPerMinute:
        """How often a client may ask."""
        return RateLimitItemPerMinute(self.settings.requests_per_minute)

    @property
    def wrong_tokens(self) -> RateLimitItemPerMinute:
        """How often a client may come with a token that is none."""
        return RateLimitItemPerMinute(max(self.settings.requests_per_minute // 10, 1))


def install(extensions: dict[str, object], service: Service) -> None:
    """Let the requests of an application find it."""
    extensions[_NAME] = service


def service() -> Service:
    """That of the application which is answering."""
    return cast("Service", current_app.extensions[_NAME])
