"""Typed operations on plain Flask: requests are checked, answers are documented.

pydantic does both. `operation` decorates a view: it hands over checked values and keeps a
description for `ioncast.service.web.http.openapi`. (A request takes a fifth longer than with Flask
alone. flask-openapi3 makes the schemas again for each request, which takes ten times as long, and
reads forms as JSON, so that a job named 1e5 becomes 100000.0. spectree describes every answer as
application/json, also a problem document, and reads a body that is not JSON as an empty object.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_args, get_type_hints

from flask import Response, request
from pydantic import BaseModel

from ioncast.service.context import service
from ioncast.service.web.http.access import Role, authorise, limit_client
from ioncast.service.web.http.given import (
    JSON,
    LARGEST_JSON,
    RequestModel,
    body_of,
    checked_json,
    checked_query,
    checked_texts,
    wrong_type,
)
from ioncast.service.web.http.problems import RequestError
from ioncast.service.web.http.sessions import token_of_session
from ioncast_base.errors import InputError

if TYPE_CHECKING:
    from werkzeug.datastructures import FileStorage

Returned = Response | BaseModel | tuple[BaseModel, int] | tuple[BaseModel, int, dict[str, str]]
_View = TypeVar("_View", bound=Callable[..., Any])
_P = ParamSpec("_P")

FORM = "multipart/form-data"

_LARGEST_JSON_ELSEWHERE = 16 << 20


@dataclass(frozen=True)
class Operation:
    """The description of a view.

    Attributes
    ----------
    role : str or None
        The role that is needed; None for everybody, even when reading is closed.
    query, body, form : type of RequestModel or None
        The request's parameters, JSON and multipart fields.
    many_files : int
        The most files that a field may have.
    answers : mapping of int to type, str or None
        By status: a model, a media type, or None for no content.
    also : tuple of int
        Statuses of problems beside those that all such operations may answer.
    text : bool
        Whether the answer may also be plain text.
    limited : bool
        Whether a request counts against the client's requests per minute.
    elsewhere : bool
        Whether the view gets `body` as bytes and has it checked in another process (see
        `checked_json`), because anybody may send it and it must not keep a worker busy.
    """

    summary: str
    role: Role | None
    query: type[RequestModel] | None = None
    body: type[RequestModel] | None = None
    form: type[RequestModel] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    many_files: int = 1
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    text: bool = False
    limited: bool = True
    elsewhere: bool = False


def describe(about: Operation) -> Callable[[_View], _View]:
    """Describe a view that checks its requests itself."""

    def decorate(view: _View) -> _View:
        view.operation = about  # type: ignore[attr-defined]
        return view

    return decorate


def operation(
    summary: str, *, role: Role | None = "reader", **described: Any
) -> Callable[[Callable[_P, Returned]], Callable[_P, Response]]:
    """Make a view an operation; the keyword arguments are other fields of `Operation`.

    The view's signature has the models of its parameters `query`, `body` and `form`, and of its
    answer. If the view returns an answer with a status, this is 200 or 201. When a view has both
    `body` and `form`, a request has one of them and the other is None.
    """

    def decorate(view: Callable[..., Returned]) -> Callable[..., Response]:
        about = Operation(summary, role, **_models(view) | described)

        @describe(about)
        @wraps(view)
        def operate(**arguments: Any) -> Response:
            if about.limited:
                limit_client(service(), request)
            authorise(about.role, service(), request, token_of_session)
            if about.query is not None:
                arguments["query"] = checked_query(about.query, request.environ)
            if about.body is not None or about.form is not None:
                arguments |= _payload(about)
            return _response(view(**arguments))

        return operate

    return decorate


def _models(view: Callable[..., Returned]) -> dict[str, Any]:
    """The models of a view's parameters and of its answer."""
    hints = get_type_hints(view)
    returned = hints.pop("return")
    answer, *status = get_args(returned) or (returned,)
    models = {name: (get_args(hint) or (hint,))[0] for name, hint in hints.items()}
    return {
        **{name: models.get(name) for name in ("query", "body", "form")},
        "answers": dict.fromkeys((200, 201) if status else (200,), answer),
        "elsewhere": models.get("body") is bytes,
    }


def _payload(about: Operation) -> dict[str, RequestModel | bytes | None]:
    """Read the body or the form of a request; the other one is None."""
    models = {"body": about.body, "form": about.form}
    read: dict[str, RequestModel | bytes | None] = dict.fromkeys(filter(models.get, models))
    if about.form is not None and request.mimetype == FORM:
        read["form"] = checked_texts(about.form, "form", request.form.items(multi=True))
        for name in about.files:
            _check_files(name, request.files.getlist(name), about.many_files)
    elif about.body is not None and request.mimetype == JSON:
        sent = body_of(request, _LARGEST_JSON_ELSEWHERE if about.elsewhere else LARGEST_JSON)
        read["body"] = sent if about.elsewhere else checked_json(about.body, sent)
    else:
        raise wrong_type(request, [{"body": JSON, "form": FORM}[name] for name in read])
    return read


def _check_files(name: str, files: Sequence[FileStorage], most: int) -> None:
    # Without a file name a part is a field, and has no file.
    if not files or not all(files):
        raise RequestError(422, InputError.kind, f"form.{name}: the file is missing")
    if len(files) > most:
        what = f"form.{name}: {len(files)} files, more than {most}"
        raise RequestError(422, InputError.kind, what)


def _response(returned: Returned) -> Response:
    if isinstance(returned, Response):
        return returned
    if isinstance(returned, BaseModel):
        returned = (returned, 200)
    model, status, headers = (*returned, None)[:3]
    return Response(model.model_dump_json(), status, headers, mimetype=JSON)
