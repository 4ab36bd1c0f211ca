"""Objects that all requests of one worker share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from flask import current_app
from sqlalchemy import Engine

from ioncast.insights.checks.values import Thresholds
from ioncast.service.decide.resources import Resources
from ioncast.service.web.sandbox.child import Children
from ioncast.service.web.site_store import SiteStore

_NAME = "ioncast"


@dataclass(frozen=True, kw_only=True)
class Service(Resources):
    """The settings and resources of one application; the database is opened for each request."""

    database: Engine
    children: Children
    thresholds: Thresholds
    store: SiteStore


def install(extensions: dict[str, object], service: Service) -> None:
    """Attach a service to an application, so that requests find it."""
    extensions[_NAME] = service


def service() -> Service:
    """Return the service of the application that is answering."""
    return cast("Service", current_app.extensions[_NAME])
