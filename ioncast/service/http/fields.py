"""Fields that several operations share, and lists in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from flask import request
from pydantic import AfterValidator, BaseModel, Field

from benchdb.store.accepted_values import stored_time
from ioncast.service.http.framework import Given
from ioncast_base import quantities
from ioncast_base.quantities import Count, Id, IoNodes
from ioncast_base.toml_files import refusing
from predictor.composition.plausible import IMPLAUSIBLE_FACTOR

_Item = TypeVar("_Item", bound=BaseModel)
_Row = TypeVar("_Row")

_LARGEST_PAGE = 500
# Programs, users and databases have no NUL in their names.
TEXT = r"^[^\x00]*$"

Bandwidth = Annotated[quantities.Bandwidth, Field(description="In MiB/s.")]
SystemName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=TEXT,
        description="The name of the system.",
        examples=["mn4"],
    ),
]
UserName = Annotated[
    str,
    Field(max_length=100, pattern=TEXT, description="The job's user.", examples=["alice"]),
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
_SECOND = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})"
JobStart = Annotated[
    str,
    Field(
        max_length=40,
        pattern=rf"^{_SECOND}(\.[0-9]{{1,9}})?{_ZONE}$",
        description="When the scheduler started this run of the job, ISO 8601 with a zone. Ids of"
        " jobs come again, so it tells their runs apart.",
        examples=["2026-11-21T04:15:02Z"],
    ),
    AfterValidator(refusing(lambda text: stored_time("the start", text))),
]
DecisionId = Annotated[str, Field(max_length=32, pattern=TEXT)]
Nodes = Annotated[Count, Field(description="Compute nodes of the job.", examples=[16])]
NodesOfLog = Annotated[
    Count,
    Field(
        description="Compute nodes of the job; by default those that its log names.",
        examples=[16],
    ),
]
Tasks = Annotated[
    Count,
    Field(
        description="Processes as the scheduler counts them; by default all processes of the logs."
    ),
]
RanWith = Annotated[
    IoNodes,
    Field(description="I/O nodes of the run; 0 is direct access."),
]
Limit = Annotated[int, Field(ge=1, le=_LARGEST_PAGE, description="The largest number of items.")]
# Of the field `implausible` of outcomes.
IMPLAUSIBLE = (
    f"Whether the bandwidth is more than {IMPLAUSIBLE_FACTOR:g} times the p90 that was expected, as"
    " of a log of another machine or of a run from a cache. It corrects no prediction."
)


class PageQuery(Given):
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
    rows : sequence
        At most one more than `limit`; the one more shows that another page follows.
    limit : int
        The number of rows of a page.
    last : callable
        Gives the value of `after` for the next page, from this page's last row.
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
