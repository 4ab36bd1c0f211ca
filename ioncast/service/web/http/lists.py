"""Lists in pages: their parameters, and the addresses of the pages before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from flask import request
from pydantic import BaseModel, Field

from ioncast.service.web.http.fields import SystemName
from ioncast.service.web.http.given import RequestModel
from ioncast_base.quantities import Id

_Item = TypeVar("_Item")
_Row = TypeVar("_Row")

_LARGEST_PAGE = 500

Limit = Annotated[int, Field(ge=1, le=_LARGEST_PAGE, description="The largest number of items.")]


class ChosenSystem(RequestModel):
    """A system; by default all."""

    system: SystemName | None = None


class PageQuery(RequestModel):
    """A part of a list."""

    after: Id | None = Field(
        None,
        description="The last item of the page before; `next` of that page contains it.",
    )
    limit: Limit = 100


class PageOfSystem(PageQuery):
    """A part of a list of one system."""

    system: SystemName


class Page(BaseModel, Generic[_Item]):
    """A part of a list."""

    items: list[_Item]
    next: str | None = Field(description="The address of the next page; null at the end.")


def cut(
    rows: Sequence[_Row], limit: int, last: Callable[[_Row], object], path: str | None = None
) -> tuple[Sequence[_Row], str | None]:
    """The rows of a page, and the address of the next page.

    Parameters
    ----------
    path : str, optional
        The address of the list with its parameters; by default the request's own. An answer
        that contains the first page of another list needs it.
    """
    if len(rows) <= limit:
        return rows, None
    shown = rows[:limit]
    after = {"after": last(shown[-1])}
    if path is None:
        return shown, f"{request.path}?{urlencode(request.args.to_dict() | after)}"
    return shown, f"{path}{'&' if '?' in path else '?'}{urlencode(after)}"


def neighbours(offset: int, limit: int, total: int) -> tuple[int | None, int | None]:
    """The offsets of the pages before and after a page; None if there is no such page.

    Examples
    --------
    >>> neighbours(0, 50, 120), neighbours(100, 50, 120), neighbours(30, 50, 120)
    ((None, 50), (50, None), (0, 80))
    """
    before = max(offset - limit, 0) if offset > 0 else None
    following = offset + limit if offset + limit < total else None
    return before, following


def same_list(offset: int | None) -> str | None:
    """The address of another page of the list in the request; None without an offset."""
    if offset is None:
        return None
    return f"{request.path}?{urlencode(request.args.to_dict() | {'offset': offset})}"
