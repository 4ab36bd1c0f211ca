"""The frame of all pages: access, errors as pages, filters of templates."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from flask import Blueprint, Flask, Response, redirect, render_template, request, session, url_for
from jinja2 import FileSystemLoader
from werkzeug.wrappers import Response as BaseResponse

from benchdb.measurements.coverage_page import TEMPLATES as COVERAGE
from ioncast.service.context import service
from ioncast.service.store.decisions import DecisionRow
from ioncast.service.web.http import problems
from ioncast.service.web.http.access import UNKNOWN_TOKEN, authorise
from ioncast.service.web.http.sessions import COOKIE, token_of_session
from ioncast.service.web.pages.assets import asset_url
from ioncast.show.rendering import TEMPLATES, is_marked
from ioncast_base.errors import DatabaseError, IoncastError
from ioncast_base.pages import rendering
from predictor.model.plausible import is_implausible_beside

if TYPE_CHECKING:
    from flask.blueprints import BlueprintSetupState

_HTML = "text/html"
# Media types for programs; they win over HTML if a client accepts both equally.
_MACHINE = ("application/problem+json", "application/json")
_INTERFACE = "/v1/"
_UNAUTHORISED, _NOT_FOUND = 401, 404
# An address on this service: browsers read // and /\ as the address of another site.
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20]*")
_PUBLIC = frozenset(["pages.login", "pages.enter", "pages.logout"])

pages = Blueprint("pages", __name__, template_folder="templates")


def page(template: str, status: int = 200, **values: Any) -> Response:
    """Render a page."""
    return Response(render_template(template, **values), status, mimetype=_HTML)


def local(address: str | None) -> str:
    """Return an address of this service, and the overview instead of any other address."""
    if address and _LOCAL.fullmatch(address):
        return address
    return url_for("pages.overview")


def problem_of(error: IoncastError) -> dict[str, Any]:
    """The problem document of an error, which holds what a client may know."""
    return cast("dict[str, Any]", json.loads(problems.of_error(error).get_data()))


def wants_page() -> bool:
    """Whether the request comes from a browser rather than from a program."""
    if request.path.startswith(_INTERFACE):
        return False
    return request.accept_mimetypes.best_match((*_MACHINE, _HTML)) == _HTML


@pages.before_request
def _to_login() -> Response | None:
    """Send a browser without a valid token to the login page."""
    if request.endpoint in _PUBLIC:
        return None
    try:
        authorise("reader", service(), request, token_of_session)
    except problems.RequestError as error:
        if error.http_status != _UNAUTHORISED or not wants_page():
            raise
        here = request.full_path.rstrip("?") if request.method == "GET" else request.path
        where = url_for("pages.login", next=here)
        # Another session perhaps seems old only because the clock is wrong.
        if error.kind == UNKNOWN_TOKEN:
            session.clear()
        return cast("Response", redirect(where, 303))
    return None


@pages.after_request
def _private(response: Response) -> Response:
    response.headers.setdefault("Cache-Control", "private, no-cache")
    response.vary.update(("Accept", "Cookie"))
    return response


# An unknown address belongs to no blueprint, so the application handles it.
@pages.app_errorhandler(_NOT_FOUND)
@pages.errorhandler(Exception)
def _as_page(error: Exception) -> BaseResponse:
    """Show an error in a browser as a page; leave redirections as they are."""
    document = problems.of_exception(error)
    if document.mimetype not in _MACHINE or not wants_page():
        return document
    told = json.loads(document.get_data())
    shown = page(
        "error.html",
        document.status_code,
        title=told["title"],
        detail=told.get("detail"),
        is_missing=document.status_code == _NOT_FOUND,
        is_database=told["type"] == problems.type_of(DatabaseError.kind),
        wait_s=document.headers.get("Retry-After"),
    )
    for name in ("Allow", "Retry-After", "WWW-Authenticate"):
        if name in document.headers:
            shown.headers[name] = document.headers[name]
    return shown


@pages.record_once
def _add_filters(state: BlueprintSetupState) -> None:
    app = cast("Flask", state.app)
    app.jinja_loader = FileSystemLoader([TEMPLATES, COVERAGE])
    rendering.prepare(app.jinja_env)
    app.jinja_env.tests["marked"] = is_marked
    app.jinja_env.filters["by_reason"] = _by_reason
    app.jinja_env.globals.update(
        is_implausible=is_implausible_beside,
        asset_url=asset_url,
    )
    app.context_processor(_of_request)


def _of_request() -> dict[str, Any]:
    has_store = service().store.folder is not None
    has_cookie, prepared = COOKIE in request.cookies, service().prepared
    shown = {"has_cookie": has_cookie, "has_store": has_store, "prepared": prepared}
    return {**shown, "keeper_state": prepared.keeper_state(time.time())}


def _by_reason(rows: Iterable[DecisionRow]) -> list[list[DecisionRow]]:
    """Group decisions that differ only in their job and time, by the newest of each group."""
    groups: dict[tuple[object, ...], list[DecisionRow]] = {}
    for row in rows:
        program = row.system, row.application_id, row.user, row.executable or row.name
        groups.setdefault((*program, row.io_nodes, row.source, row.why), []).append(row)
    return list(groups.values())
