"""The list of applications on its page: filters, order, and the pages before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from flask import request, url_for
from sqlalchemy import Connection

from benchdb.store.database import transaction
from benchdb.store.systems import system_names
from ioncast.insights.findings.text import stake_in_words
from ioncast.service.context import service
from ioncast.service.store.applications import (
    SORTS,
    USUAL_ORDERS,
    ApplicationSummary,
    OrderName,
    SortName,
    applications,
    count_applications,
)
from ioncast.service.store.run_insights import NewestRun, newest_runs
from ioncast.service.web.http.lists import neighbours
from ioncast.service.web.pages.application import answer_to
from ioncast.service.web.sandbox.insight_documents import VERSION
from ioncast.show.prediction import answer_curve, curve_of_answer
from ioncast.show.small_curve import SmallCurve
from ioncast_base.limits import LARGEST_ID

_ROWS = 50
_SPOKEN = {"asc": "ascending", "desc": "descending"}
_OTHER_WAY: Mapping[OrderName, OrderName] = {"asc": "desc", "desc": "asc"}


@dataclass(frozen=True)
class ApplicationRow:
    """An application with its newest run and the answer for the next one.

    Attributes
    ----------
    io_share : float or None
        The share of I/O in the run time; None if it is not known.
    cause, stake : str
        The largest cause of slow I/O, and the time that it can cost; both empty without one.
    io_nodes : int or None
        The number of I/O nodes for the next run; None without a prepared answer.
    """

    summary: ApplicationSummary
    bandwidth_mib_s: float | None
    io_share: float | None
    cause: str
    stake: str
    io_nodes: int | None
    curve: SmallCurve | None


@dataclass(frozen=True)
class ApplicationList:
    """A page of the list.

    Attributes
    ----------
    total, first, last : int
        The number of applications on all pages, and the places of this page's first and last one.
    filters : mapping of str to str
        The values of `search`, `user` and `system`; empty texts do not filter.
    sort, order : str or None
        The order that was asked for; None for the usual one.
    headings : mapping of str to (str, str or None)
        Of each column that can be sorted: the list in its order, in the other direction if the list
        has this order already; and the direction as `aria-sort` names it, None in another order.
    offsets : mapping of str to int or None
        Of the "first", "previous", "next" and "last" page; None if this is that page.
    """

    found: list[ApplicationRow]
    total: int
    first: int
    last: int
    filters: Mapping[str, str]
    sort: str | None
    order: str | None
    headings: Mapping[str, tuple[str, str | None]]
    offsets: Mapping[str, int | None]
    systems: list[str]


def read_list() -> ApplicationList:
    """Read the page of the list that the request asks for; odd values count as not given."""
    filters = {name: request.args.get(name, "") for name in ("search", "user", "system")}
    sort = _chosen("sort", SORTS)
    order = _chosen("order", tuple(_OTHER_WAY))
    by = cast("SortName", sort or "newest")
    way = cast("OrderName", order or USUAL_ORDERS[by])
    offset = min(max(request.args.get("offset", 0, type=int), 0), LARGEST_ID)
    chosen = {name: value or None for name, value in filters.items()}
    with transaction(service().database) as connection:
        total = count_applications(connection, **chosen)
        found = applications(connection, **chosen, sort=by, order=way, offset=offset, limit=_ROWS)
        rows = _rows(connection, found)
        systems = system_names(connection)
    return ApplicationList(
        found=rows,
        total=total,
        first=min(offset, total) + 1,
        last=offset + len(found),
        filters=filters,
        sort=sort,
        order=order,
        headings={name: _heading(name, by, way, chosen) for name in SORTS},
        offsets=_offsets(offset, total),
        systems=systems,
    )


def largest_by_io_time(connection: Connection, limit: int) -> list[ApplicationRow]:
    """List the applications with most time in I/O."""
    found = applications(connection, sort="io_seconds", limit=limit)
    return _rows(connection, [summary for summary in found if summary.io_seconds])


def _rows(connection: Connection, found: Sequence[ApplicationSummary]) -> list[ApplicationRow]:
    newest = newest_runs(connection, [summary.application.id for summary in found])
    return [_row(summary, newest.get(summary.application.id)) for summary in found]


def _row(summary: ApplicationSummary, run: NewestRun | None) -> ApplicationRow:
    if run is None:
        return ApplicationRow(summary, None, None, "", "", None, None)
    checks = run.checks if run.version == VERSION else None
    share = None if checks is None else checks["verdict"]["io_share_of_run"]
    worst = _worst(checks["causes"]) if checks is not None else None
    answer = answer_to(summary.application, run.name, run.nodes, run.tasks)
    curve = curve_of_answer(answer)
    return ApplicationRow(
        summary=summary,
        bandwidth_mib_s=run.bandwidth_mib_s,
        io_share=share,
        cause=worst["cause"] if worst else "",
        stake=stake_in_words(worst) if worst else "",
        io_nodes=answer["io_nodes"] if curve else None,
        curve=answer_curve(curve, answer["io_nodes"]) if curve else None,
    )


def _worst(causes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The cause with most time at stake, unless next to none is."""
    known = [cause for cause in causes if cause["importance"] in {"major", "minor"}]
    return max(known, key=lambda cause: cause["seconds_at_stake"] or 0.0, default=None)


def _chosen(name: str, known: tuple[str, ...]) -> str | None:
    value = request.args.get(name, "")
    return value if value in known else None


def _heading(
    name: SortName, by: SortName, way: OrderName, chosen: Mapping[str, Any]
) -> tuple[str, str | None]:
    next_way = _OTHER_WAY[way] if name == by else USUAL_ORDERS[name]
    address = url_for("pages.applications", **chosen, sort=name, order=next_way)
    return address, _SPOKEN[way] if name == by else None


def _offsets(offset: int, total: int) -> dict[str, int | None]:
    before, following = neighbours(offset, _ROWS, total)
    # After a page beyond the end, the page before is the last one.
    end = (total - 1) // _ROWS * _ROWS if total else 0
    return {
        "first": None if before is None else 0,
        "previous": None if before is None else min(before, end),
        "next": following,
        "last": None if following is None else end,
    }
