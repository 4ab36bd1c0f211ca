"""Typed operations on plain Flask: requests are checked, answers are documented.

pydantic does both. `operation` decorates a view: it hands over checked values and keeps a
description for `ioncast.service.http.openapi`. (A request takes a fifth longer than with Flask
alone. The existing library made the JSON schema again for each request, which takes ten times
as long.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import unquote_plus

from flask import Response, request
from pydantic import BaseModel, ConfigDict, ValidationError

from ioncast.service.http import problems
from ioncast.service.http.access import Role, authorise, limit_client
from ioncast.service.http.problems import RequestError
from ioncast_base.errors import InputError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment
    from werkzeug.datastructures import FileStorage

Returned = Response | BaseModel | tuple[BaseModel, int] | tuple[BaseModel, int, dict[str, str]]
_Model = TypeVar("_Model", bound=BaseModel)
_P = ParamSpec("_P")

JSON = "application/json"
FORM = "multipart/form-data"

# JSON is read into memory as a whole, unlike a file. While pydantic checks it, a worker does
# nothing else: a third of a second per MiB when every value is wrong.
_LARGEST_JSON = 4 << 20
_LARGEST_JSON_ELSEWHERE = 16 << 20


class Given(BaseModel):
    """A request's values: other fields are errors, so that a misspelled name is noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Operation:
    """The description of a view.

    Attributes
    ----------
    summary : str
        One line; the view's docstring is the description.
    role : str or None
        The role that is needed; None for everybody, even when reading is closed.
    query, body, form : type of Given or None
        The request's parameters, JSON and multipart fields.
    files : mapping of str to str
        The form's files: a description by field.
    many_files : int
        The most files that a field may have.
    answers : mapping of int to type, str or None
        By status: a model, a media type, or None for no content.
    also : tuple of int
        Statuses of problems beside those that every operation may answer.
    text : bool
        Whether the answer may also be plain text.
    limited : bool
        Whether a request counts against the client's requests per minute.
    elsewhere : bool
        Whether the view gets unchecked JSON and has it checked in another process (see
        `checked_json`), because anybody may send it and it must not keep a worker busy.
    """

    summary: str
    role: Role | None
    query: type[Given] | None = None
    body: type[Given] | None = None
    form: type[Given] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    many_files: int = 1
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    text: bool = False
    limited: bool = True
    elsewhere: bool = False


def operation(
    summary: str, *, role: Role | None = "reader", **described: Any
) -> Callable[[Callable[_P, Returned]], Callable[_P, Response]]:
    """Make a view an operation; the keyword arguments are the fields of `Operation`.

    The view gets `query`, `body` and `form` as keyword arguments. When both `body` and `form`
    are described, a request has one of them and the other is None.
    """
    about = Operation(summary, role, **described)

    def decorate(view: Callable[..., Returned]) -> Callable[..., Response]:
        @wraps(view)
        def operate(**arguments: Any) -> Response:
            if about.limited:
                limit_client()
            authorise(about.role)
            if about.query is not None:
                arguments["query"] = checked_query(about.query, request.environ)
            if about.body is not None or about.form is not None:
                arguments |= _payload(about)
            return _response(view(**arguments))

        operate.operation = about  # type: ignore[attr-defined]
        return operate

    return decorate


def checked_query(model: type[_Model], environ: WSGIEnvironment) -> _Model:
    """Check the parameters of a request.

    Raises
    ------
    RequestError
        With the names of the parameters that cannot be used.
    """
    return _checked(model, "query", parameters(environ["QUERY_STRING"]))


def parameters(query: str) -> Iterator[tuple[str, str]]:
    """Split a query from WSGI; `urllib.parse.parse_qsl` takes twice as long."""
    for part in query.encode("latin-1").decode(errors="replace").split("&"):
        name, _, value = part.partition("=")
        if "%" in part or "+" in part:
            name, value = unquote_plus(name), unquote_plus(value)
        if part:
            yield name, value


def _checked(model: type[_Model], place: str, values: Iterable[tuple[str, str]]) -> _Model:
    """Check values that are texts; an empty text is a field that was left blank.

    An empty field that does not exist is a mistake all the same.
    """
    given: dict[str, str] = {}
    for name, value in values:
        if name in given:
            raise RequestError(422, InputError.kind, f"{place}.{name}: is given twice")
        given[name] = value
    try:
        kept = {n: value for n, value in given.items() if value or n not in model.model_fields}
        return model.model_validate(kept)
    except ValidationError as error:
        raise problems.of_validation(error, place) from error


def checked_json(model: type[_Model], text: bytes) -> _Model:
    """Check JSON.

    Raises
    ------
    RequestError
        With the names of the fields that cannot be used.
    """
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise problems.of_validation(error, "body") from error


def _text(most: int) -> bytes:
    request.max_content_length = min(request.max_content_length or most, most)
    return request.get_data()


def _payload(about: Operation) -> dict[str, Given | bytes | None]:
    """Read the body or the form of a request; the other one is None."""
    known = {JSON: about.body, FORM: about.form}
    read: dict[str, Given | bytes | None] = {
        name: None for name, model in (("body", about.body), ("form", about.form)) if model
    }
    if about.form is not None and request.mimetype == FORM:
        read["form"] = _checked(about.form, "form", request.form.items(multi=True))
        for name in about.files:
            _check_files(name, request.files.getlist(name), about.many_files)
    elif about.body is not None and request.mimetype == JSON:
        if about.elsewhere:
            read["body"] = _text(_LARGEST_JSON_ELSEWHERE)
        else:
            read["body"] = checked_json(about.body, _text(_LARGEST_JSON))
    else:
        kinds = [kind for kind, model in known.items() if model]
        raise RequestError(
            415,
            "unsupported-media-type",
            f"the request is {request.mimetype or 'of no type'}",
            remedy=f"send {' or '.join(kinds)}",
            headers={"Accept-Post": ", ".join(kinds)},
        )
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
