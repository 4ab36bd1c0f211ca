"""Typed operations on plain Flask: what comes in is checked, what can go out is documented.

pydantic does both. A view is decorated with `operation`, which hands it checked values and
leaves a description for `ioncast.service.api.openapi`. (A request costs a fifth more than with
Flask alone; the library at hand made the JSON schema anew for each, which costs ten times that.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import unquote_plus

from flask import Response, request
from pydantic import BaseModel, ConfigDict, ValidationError

from ioncast.service.api import problems
from ioncast.service.api.access import Role, authorise, limit_client
from ioncast.service.api.problems import RequestError
from ioncast_base.errors import InputError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

Returned = Response | BaseModel | tuple[BaseModel, int] | tuple[BaseModel, int, dict[str, str]]
_Model = TypeVar("_Model", bound=BaseModel)
_P = ParamSpec("_P")

JSON = "application/json"
FORM = "multipart/form-data"

# JSON is read as a whole: of a file there is never so much in memory. While pydantic checks it,
# a worker does nothing else, for a third of a second per MiB of what is wrong all over.
_LARGEST_JSON = 4 << 20
_LARGEST_JSON_ELSEWHERE = 16 << 20


class Given(BaseModel):
    """What a client sends: nothing but the fields, so that a misspelled one is noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Operation:
    """The description of a view.

    Attributes
    ----------
    summary : str
        A line; the view's docstring is the description.
    role : str or None
        Who may; None is everybody, also where reading is closed.
    query, body, form : type of Given or None
        What is read from the request: parameters, JSON, multipart fields.
    files : mapping of str to str
        Files of the form, by field, with what they are.
    answers : mapping of int to type, str or None
        By status: a model, a media type, or None for no content.
    also : tuple of int
        Problems besides those that any operation may answer.
    text : bool
        Whether the answer is also to be had as plain text.
    limited : bool
        Whether it counts against the client's requests per minute.
    elsewhere : bool
        Whether the view gets the JSON as it came, to have it checked in another process (see
        `checked_json`): what anybody may send must not keep a worker busy.
    """

    summary: str
    role: Role | None
    query: type[Given] | None = None
    body: type[Given] | None = None
    form: type[Given] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    text: bool = False
    limited: bool = True
    elsewhere: bool = False


def operation(
    summary: str, *, role: Role | None = "reader", **described: Any
) -> Callable[[Callable[_P, Returned]], Callable[_P, Response]]:
    """Make a view an operation; fields are those of `Operation`.

    The view gets `query`, `body` or `form` as keyword arguments, the last two as one of the
    two where both are described; the other one is None.
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
    """The parameters of a request as what they must be.

    Raises
    ------
    RequestError
        Naming the parameters that cannot be used.
    """
    return _checked(model, "query", parameters(environ["QUERY_STRING"]))


def parameters(query: str) -> Iterator[tuple[str, str]]:
    """What `urllib.parse.parse_qsl` takes twice as long for, of a query as WSGI has it."""
    for part in query.encode("latin-1").decode(errors="replace").split("&"):
        name, _, value = part.partition("=")
        if "%" in part or "+" in part:
            name, value = unquote_plus(name), unquote_plus(value)
        if part:
            yield name, value


def _checked(model: type[_Model], place: str, values: Iterable[tuple[str, str]]) -> _Model:
    """Values that are texts; empty ones are not given, as in a form that is left blank."""
    given: dict[str, str] = {}
    for name, value in values:
        if name in given:
            raise RequestError(422, InputError.kind, f"{place}.{name}: is given twice")
        given[name] = value
    try:
        return model.model_validate({name: value for name, value in given.items() if value})
    except ValidationError as error:
        raise problems.of_validation(error, place) from error


def checked_json(model: type[_Model], text: bytes) -> _Model:
    """JSON as what it must be.

    Raises
    ------
    RequestError
        Naming the fields that cannot be used.
    """
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise problems.of_validation(error, "body") from error


def _text(most: int) -> bytes:
    request.max_content_length = min(request.max_content_length or most, most)
    return request.get_data()


def _payload(about: Operation) -> dict[str, Given | bytes | None]:
    """The body or the form, whichever was sent."""
    known = {JSON: about.body, FORM: about.form}
    read: dict[str, Given | bytes | None] = {
        name: None for name, model in (("body", about.body), ("form", about.form)) if model
    }
    if about.form is not None and request.mimetype == FORM:
        read["form"] = _checked(about.form, "form", request.form.items(multi=True))
        for name in about.files:
            if not request.files.get(name):
                raise RequestError(422, InputError.kind, f"form.{name}: the file is missing")
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


def _response(returned: Returned) -> Response:
    if isinstance(returned, Response):
        return returned
    if isinstance(returned, BaseModel):
        returned = (returned, 200)
    model, status, headers = (*returned, None)[:3]
    return Response(model.model_dump_json(), status, headers, mimetype=JSON)
