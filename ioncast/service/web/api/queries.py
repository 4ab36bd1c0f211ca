"""Named queries on the store of the site; no request brings a text of SQL."""

from __future__ import annotations

from typing import Any

from flask import Blueprint
from pydantic import BaseModel, ConfigDict, Field

from ioncast.service.context import service
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.site_store import MOST_ROWS

queries = Blueprint("queries", __name__)


class ValuesOfParameters(RequestModel):
    """Values of the query's parameters by name, such as `month=2026-01-2026-03&limit=5`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]


class QueryParameter(BaseModel):
    """A parameter of a query."""

    name: str
    kind: str = Field(
        description="integer, number, text, month, or the words to choose from with | between them."
    )
    is_range: bool = Field(description="Whether it takes FROM-TO, such as 2026-01-2026-03.")
    usual: str | None = Field(
        description="Its usual value; `-` stands for no value, null says that it is needed."
    )
    meaning: str


class NamedQuery(BaseModel):
    """A query that can be asked by its name."""

    name: str
    title: str
    parameters: list[QueryParameter]


class NamedQueries(BaseModel):
    """The named queries, sorted by name."""

    items: list[NamedQuery]


class QueryAnswer(BaseModel):
    """The answer to a query."""

    model_config = ConfigDict(ser_json_bytes="base64")

    query: str
    columns: list[str]
    rows: list[dict[str, Any]] = Field(description="Values by column.")
    truncated: bool = Field(description=f"Whether there are more than these {MOST_ROWS:,} rows.")


@queries.get("/v1/queries")
@operation("Which named queries are there?")
def list_queries() -> NamedQueries:
    """List named queries with their parameters: those of ioncast, and those of the site."""
    items = list(service().store.queries.values())
    return NamedQueries.model_validate({"items": items}, from_attributes=True)


@queries.get("/v1/queries/<name>")
@operation("What does a named query answer?", also=(404,))
def answer_query(name: str, query: ValuesOfParameters) -> QueryAnswer:
    """Ask the store of this service, as `ioncast sql` does.

    A query that takes more than 20 seconds or 512 MiB of memory is ended, and answered with 503.
    """
    found = service().store.answer(name, query.__pydantic_extra__)
    return QueryAnswer(query=name, **vars(found))
