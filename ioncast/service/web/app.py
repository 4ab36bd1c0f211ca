"""The Flask application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from werkzeug.middleware.proxy_fix import ProxyFix

from benchdb.store.database import existing_database
from ioncast.service.context import Service, install
from ioncast.service.decide.counts import DecisionCounts, new_memory
from ioncast.service.decide.prepared import Reader, prepared_files
from ioncast.service.decide.spool import SpoolWriter, spool_folder
from ioncast.service.settings import Settings
from ioncast.service.web import metrics, security_headers
from ioncast.service.web.api.advice import advice
from ioncast.service.web.api.allocations import allocations
from ioncast.service.web.api.benchmarks import benchmarks
from ioncast.service.web.api.decisions import decisions
from ioncast.service.web.api.jobs import jobs
from ioncast.service.web.api.operating import operations
from ioncast.service.web.api.outcomes import outcomes
from ioncast.service.web.api.predictions import predictions
from ioncast.service.web.api.queries import queries
from ioncast.service.web.api.queue import queue
from ioncast.service.web.api.slow_io_nodes import slow
from ioncast.service.web.api.traces import traces
from ioncast.service.web.http import problems, sessions
from ioncast.service.web.http.uploads import MOST_LOGS, UploadRequest
from ioncast.service.web.pages import views  # noqa: F401 - it adds pages
from ioncast.service.web.pages.assets import assets
from ioncast.service.web.pages.frame import pages
from ioncast.service.web.sandbox.child import ChildLimits, Children
from ioncast.service.web.site_store import SiteStore

_MOST_FIELDS = 100
# The login has in its own address the one that it leads to.
_SECRET_ADDRESSES = ("/kept", "/login")


class _Application(Flask):
    request_class = UploadRequest

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function: none is asynchronous, and checking costs a tenth of a decision."""
        return func


def create_app(settings: Settings, counts: int | None = None) -> Flask:
    """Make the application, without opening or starting anything.

    Parameters
    ----------
    counts : int, optional
        The descriptor of a file for the counts of its decisions; by default they are in memory.
    """
    app = _Application(__name__)
    app.config.update(
        MAX_CONTENT_LENGTH=settings.max_upload_mib << 20,
        MAX_FORM_MEMORY_SIZE=2 << 20,
        MAX_FORM_PARTS=MOST_LOGS + _MOST_FIELDS,
    )
    install(
        app.extensions,
        Service(
            settings=settings,
            database=existing_database(settings.database, patience_s=settings.patience_s),
            prepared=Reader(*prepared_files(settings.state)),
            spool=SpoolWriter(spool_folder(settings.state)),
            counts=DecisionCounts(new_memory() if counts is None else counts),
            children=Children(
                settings.uploads_at_once,
                ChildLimits(settings.upload_memory_mib << 20, settings.upload_s),
            ),
            thresholds=settings.thresholds(),
            store=SiteStore(settings),
        ),
    )
    if settings.proxies:
        number = settings.proxies
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=number, x_proto=number, x_host=number
        )
    metrics.register(app)
    problems.register(app)
    sessions.register(app)
    app.after_request(_secure)
    for blueprint in (
        decisions,
        operations,
        predictions,
        advice,
        allocations,
        traces,
        outcomes,
        queue,
        slow,
        jobs,
        queries,
        benchmarks,
        assets,
        pages,
    ):
        app.register_blueprint(blueprint)
    return app


def _secure(response: Response) -> Response:
    if request.path.startswith("/v1/"):
        for name, value in security_headers.FOR_PROGRAMS:
            response.headers.add(name, value)
    else:
        response.headers.update(security_headers.FOR_PEOPLE)
        if request.path.startswith(_SECRET_ADDRESSES):
            response.headers.update(security_headers.FOR_SECRET_ADDRESSES)
    return response
