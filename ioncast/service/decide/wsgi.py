"""The WSGI application of a process that only answers schedulers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from ioncast.service.decide.counts import ASK, ASK_WITH_SCRIPT, NO_ENDPOINT
from ioncast.service.decide.replying import (
    PATH,
    answer_at_once,
    ask,
    ask_with_script,
)
from ioncast.service.decide.resources import Resources
from ioncast.service.web.http.problems import of_error, of_exception, of_http
from ioncast.service.web.security_headers import FOR_PROGRAMS
from ioncast_base.errors import IoncastError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_ANSWERS: dict[str, Callable[[Resources, Request], Response]] = {
    ASK: ask,
    ASK_WITH_SCRIPT: ask_with_script,
}
_OPTIONS = "OPTIONS"
_ADDRESSES = Map(
    [
        Rule(PATH, methods=["GET", _OPTIONS], endpoint=ASK),
        Rule(PATH, methods=["POST", _OPTIONS], endpoint=ASK_WITH_SCRIPT),
    ]
)


def application(of: Resources) -> WSGIApplication:
    """Make the application."""

    def answer(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        body = answer_at_once(of, environ, respond)
        if body is not None:
            return body
        began_s = time.perf_counter()
        request = Request(environ)
        request.max_content_length = of.settings.max_upload_mib << 20
        endpoint, response = _answered(of, request)
        for name, value in FOR_PROGRAMS:
            response.headers.add(name, value)
        of.counts.answered(endpoint, response.status_code, began_s)
        return response(environ, respond)

    return answer


def _answered(of: Resources, request: Request) -> tuple[str, Response]:
    """Answer a request, also one that fails, and name its endpoint."""
    endpoint = NO_ENDPOINT
    try:
        addresses = _ADDRESSES.bind_to_environ(request.environ)
        endpoint, _ = addresses.match()
        if request.method == _OPTIONS:
            return endpoint, _methods(addresses.allowed_methods())
        return endpoint, _ANSWERS[endpoint](of, request)
    except IoncastError as error:
        return endpoint, of_error(error)
    except HTTPException as error:
        return endpoint, of_http(error)
    except Exception as error:
        return endpoint, of_exception(error)


def _methods(allowed: Iterable[str]) -> Response:
    response = Response(mimetype="text/html")
    response.allow.update(allowed)
    return response
