"""Every error as a problem document (RFC 9457)."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

from gunicorn.http import errors as unparsable
from pydantic import BaseModel, Field, ValidationError
from werkzeug.exceptions import (
    BadRequest,
    ExpectationFailed,
    HTTPException,
    NotImplemented,
    RequestHeaderFieldsTooLarge,
    RequestURITooLarge,
)
from werkzeug.wrappers import Response

from ioncast_base.errors import InputError, IoncastError, NotOneRunError, as_field
from ioncast_base.toml_files import in_plain_words

if TYPE_CHECKING:
    from flask import Flask

_LOG = logging.getLogger("ioncast.service")
_MEDIA_TYPE = "application/problem+json"
_CLIENT_ERROR, _SERVER_ERROR = 400, 500
_UNAVAILABLE = 503
_RETRY_AFTER_S = 5
# Other errors of gunicorn's parser, in heads and in chunked bodies, are bad requests.
_PARSE_ERRORS: dict[type[Exception], type[HTTPException]] = {
    unparsable.LimitRequestLine: RequestURITooLarge,
    unparsable.LimitRequestHeaders: RequestHeaderFieldsTooLarge,
    unparsable.ExpectationFailed: ExpectationFailed,
    unparsable.UnsupportedTransferCoding: NotImplemented,
}
# Flask's own sentences for these speak of URLs that a person typed.
_DETAILS = {
    404: "the address does not exist; /docs lists all operations",
    405: "the address does not accept this method; the header Allow lists those that it accepts",
}
# The first mistakes say enough about a request with a thousand.
_MOST_ERRORS = 20


class Mistake(BaseModel):
    """One value that cannot be used."""

    where: str = Field(description="The parameter or field.", examples=["query.nodes"])
    what: str = Field(description="The mistake.")


class Problem(BaseModel):
    """A problem document, RFC 9457."""

    type: str = Field(description="The kind of problem.", examples=["urn:ioncast:unusable-input"])
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str | None = Field(None, description="The problem, and what to do.")
    errors: list[Mistake] | None = Field(None, description="The values that cannot be used.")
    runs: list[list[int]] | None = Field(
        None,
        description="If the parts `log` are of several runs: the places of the logs of each run.",
    )


class RequestError(IoncastError):
    """A request that is rejected before anything is done; its title says the kind in words."""

    def __init__(
        self,
        status: int,
        kind: str,
        what: str,
        *,
        remedy: str | None = None,
        headers: dict[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(what, remedy=remedy)
        self.http_status = status
        self.kind = kind
        self.title = kind.replace("-", " ").capitalize()
        self.headers = headers or {}
        self.errors = errors

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` rebuild it: it may be raised in another process."""
        return RequestError, (self.http_status, self.kind, self.what), vars(self)


class StoreUnavailableError(RequestError):
    """A store that cannot answer; clients read why, because it may answer something else."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(503, "store-unavailable", what, remedy=remedy)


class StoreLimitError(StoreUnavailableError):
    """A question that needs more time, memory or rows than a page may take."""


def problem(
    status: int,
    kind: str,
    title: str,
    headers: dict[str, str] | None = None,
    **members: object,
) -> Response:
    """Make a problem document, without empty members; with status 503 it says when to ask again."""
    document = {"type": type_of(kind), "title": title, "status": status}
    document |= {name: value for name, value in members.items() if value}
    response = Response(json.dumps(document), status, headers, mimetype=_MEDIA_TYPE)
    if status == _UNAVAILABLE:
        response.headers.setdefault("Retry-After", str(_RETRY_AFTER_S))
    return response


def type_of(kind: str) -> str:
    """The type of the problem documents of errors of a kind."""
    return f"urn:ioncast:{kind}"


def of_error(error: IoncastError) -> Response:
    """The document of an error of ours; errors of the service itself are only in the log."""
    members: dict[str, Any] = {"detail": words_of(error)}
    if members["detail"] is None:
        _LOG.error("%s", error)
        members["detail"] = "the request is not the cause; send it again later"
    elif isinstance(error, RequestError):
        members |= {"headers": error.headers, "errors": error.errors}
    elif isinstance(error, InputError):
        items = [{"where": f"form.log.{place}", "what": what} for place, what in error.items]
        members |= {"errors": items, "runs": isinstance(error, NotOneRunError) and error.runs}
    return problem(error.http_status, error.kind, error.title, **members)


def words_of(error: Exception) -> str | None:
    """The words of an error for a client; None if the service is its cause, not the request."""
    is_told = isinstance(error, StoreUnavailableError)
    if isinstance(error, IoncastError) and (is_told or error.http_status < _SERVER_ERROR):
        return error.in_words(as_field)
    return None


def of_validation(error: ValidationError, place: str) -> RequestError:
    """The error for values that pydantic rejects; `place` is query, body or form."""
    found = error.errors(include_url=False, include_input=False)
    errors = [
        {"where": ".".join([place, *map(str, each["loc"])]), "what": in_plain_words(each)}
        for each in found[:_MOST_ERRORS]
    ]
    first = f"{errors[0]['where']}: {errors[0]['what']}"
    return RequestError(422, InputError.kind, first, errors=errors)


def of_http(error: HTTPException) -> Response:
    """The document of an error of Flask; a redirection is answered as it is."""
    if error.code is None or error.code < _CLIENT_ERROR or error.response is not None:
        return error.get_response()
    kept = {name: value for name, value in error.get_headers() if name == "Allow"}
    kind = re.sub(r"[^a-z0-9]+", "-", error.name.lower())
    detail = error.description
    if detail == type(error).description:
        detail = _DETAILS.get(error.code, detail)
    return problem(error.code, kind, error.name, kept, detail=detail)


def of_exception(error: Exception) -> Response:
    """The document of an error of ours or of Flask, of a request that is not HTTP, or a defect."""
    if isinstance(error, IoncastError):
        return of_error(error)
    if isinstance(error, unparsable.ParseException):
        # Its own words quote the request.
        error = _PARSE_ERRORS.get(type(error), BadRequest)()
    return of_http(error) if isinstance(error, HTTPException) else of_defect(error)


def of_defect(error: BaseException) -> Response:
    """The document of a defect of ours; its details are only in the log."""
    _LOG.error("a request failed", exc_info=error)
    told = "this is a defect of the service; please report it"
    return problem(_SERVER_ERROR, "internal-error", "Internal error", detail=told)


def register(app: Flask) -> None:
    """Answer every error of an application with a problem document."""
    app.register_error_handler(Exception, of_exception)
