"""Fields that several operations take, and lists in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from flask import request
from pydantic import BaseModel, Field

from ioncast.service.api.framework import Given
from ioncast_base import quantities
from ioncast_base.quantities import Count, Id, IoNodes

_Item = TypeVar("_Item", bound=BaseModel)
_Row = TypeVar("_Row")

_LARGEST_PAGE = 500
# NUL is in no name that a program, a user or a database has.
TEXT = r"^[^\x00]*$"

Bandwidth = Annotated[quantities.Bandwidth, Field(description="In MiB/s.")]
SystemName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=TEXT, description="The machine.", examples=["mn4"]),
]
UserName = Annotated[
    str,
    Field(max_length=100, pattern=TEXT, description="Whose job it was.", examples=["alice"]),
]
JobName = Annotated[
    str, Field(max_length=200, pattern=TEXT, description="The job's name.", examples=["restart"])
]
JobId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        pattern=TEXT,
        description="The scheduler's id of the job.",
        examples=["4711"],
    ),
]
DecisionId = Annotated[str, Field(max_length=32, pattern=TEXT)]
Nodes = Annotated[Count, Field(description="Compute nodes of the job.", examples=[16])]
RanWith = Annotated[
    IoNodes,
    Field(description="I/O nodes that it ran with; 0 is direct access."),
]


class PageQuery(Given):
    """Which part of a list."""

    after: Id | None = Field(
        None, description="The last item of the page before; `next` of that page has it."
    )
    limit: Annotated[int, Field(ge=1, le=_LARGEST_PAGE)] = Field(
        100, description="How many items at most."
    )


class PageOfSystem(PageQuery):
    """Which part of a list of one system's."""

    system: SystemName


class Page(BaseModel, Generic[_Item]):
    """A part of a list."""

    items: list[_Item]
    next: str | None = Field(description="Where the next page is; null at the end.")


def cut(
    rows: Sequence[_Row], limit: int, last: Callable[[_Row], object], path: str | None = None
) -> tuple[Sequence[_Row], str | None]:
    """The rows of a page, and where the next page is.

    Parameters
    ----------
    rows : sequence
        One more than `limit`, where there are as many.
    limit : int
        How many rows a page has.
    last : callable
        What the next page begins after: of the last row.
    path : str, optional
        Of the list, parameters and all, where the request is for something else that holds its
        first page.
    """
    if len(rows) <= limit:
        return rows, None
    shown = rows[:limit]
    after = {"after": last(shown[-1])}
    if path is None:
        return shown, f"{request.path}?{urlencode(request.args.to_dict() | after)}"
    return shown, f"{path}{'&' if '?' in path else '?'}{urlencode(after)}"
