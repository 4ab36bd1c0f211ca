"""Values that requests give, checked by pydantic; a server without Flask can use this too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, ValidationError
from werkzeug.wrappers import Request

from ioncast.service.web.http import problems
from ioncast.service.web.http.problems import RequestError
from ioncast_base.errors import InputError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_Model = TypeVar("_Model", bound=BaseModel)

JSON = "application/json"

# JSON is read into memory as a whole, unlike a file. While pydantic checks it, a worker does
# nothing else: a third of a second per MiB when every value is wrong.
LARGEST_JSON = 4 << 20


class RequestModel(BaseModel):
    """A request's values: other fields are errors, so that a misspelled name is noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def checked_query(model: type[_Model], environ: WSGIEnvironment) -> _Model:
    """Check the parameters of a request."""
    return checked_texts(model, "query", parameters(environ["QUERY_STRING"]))


def parameters(query: str) -> Iterator[tuple[str, str]]:
    """Split a query from WSGI; `urllib.parse.parse_qsl` takes twice as long."""
    for part in query.encode("latin-1").decode(errors="replace").split("&"):
        name, _, value = part.partition("=")
        if "%" in part or "+" in part:
            name, value = unquote_plus(name), unquote_plus(value)
        if part:
            yield name, value


def checked_texts(model: type[_Model], place: str, values: Iterable[tuple[str, str]]) -> _Model:
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
    """Check JSON."""
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise problems.of_validation(error, "body") from error


def body_of(request: Request, most_bytes: int = LARGEST_JSON) -> bytes:
    """Read the whole body of a request, which may have at most so many bytes."""
    request.max_content_length = min(request.max_content_length or most_bytes, most_bytes)
    return request.get_data()


def wrong_type(request: Request, accepted: Sequence[str]) -> RequestError:
    """The error for a body of another media type than the accepted ones."""
    return RequestError(
        415,
        "unsupported-media-type",
        f"the request is {request.mimetype or 'of no type'}",
        remedy=f"send {' or '.join(accepted)}",
        headers={"Accept-Post": ", ".join(accepted)},
    )
