"""Applications in the database: each is a program of a user on a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from benchdb.store.accepted_values import is_text
from benchdb.store.schema import systems
from ioncast.service.store.tables import applications as applications_table
from ioncast.service.store.tables import decisions, insights, runs
from ioncast_base.errors import UnknownNameError
from ioncast_base.files import program_of
from ioncast_base.limits import LARGEST_ID


@dataclass(frozen=True)
class Application:
    """A program of a user on a system; `program` is the executable without its folder."""

    id: int
    system: str
    executable: str
    program: str
    user: str


@dataclass(frozen=True)
class ApplicationSummary:
    """An application with the size and the age of its history.

    `newest` is the start of the newest run, or the time when it was stored; ISO 8601 in UTC.
    `io_seconds` is the time in I/O of all runs with insights, and `stake_seconds` the part of it
    that is at stake.
    """

    application: Application
    runs: int
    newest: str
    io_seconds: float
    stake_seconds: float


# The columns by which a list may be sorted. All but names begin with the largest.
SortName = Literal["newest", "runs", "program", "user", "io_seconds", "stake_seconds"]
OrderName = Literal["asc", "desc"]
SORTS: tuple[SortName, ...] = get_args(SortName)
USUAL_ORDERS: Mapping[SortName, OrderName] = {
    "newest": "desc",
    "runs": "desc",
    "program": "asc",
    "user": "asc",
    "io_seconds": "desc",
    "stake_seconds": "desc",
}
# The time that orders runs.
RUN_TIME = func.coalesce(runs.c.started, runs.c.stored_at)
# Columns that `application_of_row` reads; the query must join `applications` and `systems`.
APPLICATION_COLUMNS = (
    applications_table.c.id.label("application_id"),
    systems.c.name.label("system"),
    applications_table.c.executable,
    applications_table.c.program,
    applications_table.c.user,
)
# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_FIND = select(applications_table.c.id).where(
    applications_table.c.system_id == bindparam("in_system"),
    applications_table.c.user == bindparam("of_user"),
    applications_table.c.executable == bindparam("path"),
)
_TIMES = ("io_seconds", "stake_seconds")
_HISTORY = ("runs", "newest", *_TIMES)
_SUMMARIES = select(
    *APPLICATION_COLUMNS, *(applications_table.c[name] for name in _HISTORY)
).join_from(applications_table, systems)
_SUMMARY = _SUMMARIES.where(applications_table.c.id == bindparam("id"))


def application(connection: Connection, application_id: int) -> ApplicationSummary:
    """Read one application; an UnknownNameError if the id is unknown."""
    key = {"id": checked_id(application_id, "application")}
    row = connection.execute(_SUMMARY, key).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"the database has no application {application_id}")
    return _summary(row)


def applications(
    connection: Connection,
    *,
    system: str | None = None,
    user: str | None = None,
    search: str | None = None,
    sort: SortName = "newest",
    order: OrderName | None = None,
    offset: int = 0,
    limit: int = 100,
) -> list[ApplicationSummary]:
    """List applications, by default those with the newest runs first.

    `search` is a text of the executable or the user; upper and lower case are the same (in SQLite
    only for ASCII letters). Applications that are equal by `sort` are in the order of their ids.
    `offset` leaves out those of earlier pages.
    """
    conditions = _conditions(system, user, search)
    if conditions is None or offset > LARGEST_ID:
        return []
    is_falling = (order or USUAL_ORDERS[sort]) == "desc"
    columns = (applications_table.c[sort], applications_table.c.id)
    keys = [column.desc() if is_falling else column.asc() for column in columns]
    # Only the index is read up to the page, and whole rows only for the page itself.
    ids = (
        select(applications_table.c.id)
        .where(*conditions)
        .order_by(*keys)
        .offset(offset)
        .limit(limit)
    )
    page = _SUMMARIES.where(applications_table.c.id.in_(ids.scalar_subquery())).order_by(*keys)
    return [_summary(row) for row in connection.execute(page).mappings()]


def count_applications(
    connection: Connection,
    *,
    system: str | None = None,
    user: str | None = None,
    search: str | None = None,
) -> int:
    """Count the applications that `applications` lists on all pages."""
    conditions = _conditions(system, user, search)
    if conditions is None:
        return 0
    query = select(func.count()).select_from(applications_table).where(*conditions)
    return connection.scalar(query) or 0


def ids_of_applications(
    connection: Connection, system: str, *, after: int = 0, limit: int = 100
) -> list[int]:
    """List the ids of a system's applications that are greater than `after`, ascending."""
    query = (
        select(applications_table.c.id)
        .where(applications_table.c.id > after, _is_of(system))
        .order_by(applications_table.c.id)
        .limit(limit)
    )
    return list(connection.scalars(query))


def _conditions(
    system: str | None, user: str | None, search: str | None
) -> list[ColumnElement[bool]] | None:
    """The conditions of a list; None if no application can fulfil them."""
    if not all(map(is_text, (system, user, search))):
        return None
    conditions: list[ColumnElement[bool]] = []
    if system is not None:
        conditions.append(_is_of(system))
    if user is not None:
        conditions.append(applications_table.c.user == user)
    if search:
        found = (applications_table.c.executable, applications_table.c.user)
        conditions.append(or_(*(each.icontains(search, autoescape=True) for each in found)))
    return conditions


def _is_of(system: str) -> ColumnElement[bool]:
    named = select(systems.c.id).where(systems.c.name == system).scalar_subquery()
    return applications_table.c.system_id == named


def note_new_run(connection: Connection, application_id: int, time: str) -> None:
    """Count one more run of an application, with the time that orders runs."""
    newest = applications_table.c.newest
    values = {
        "runs": applications_table.c.runs + 1,
        "newest": case((newest > time, newest), else_=time),
    }
    _change(connection, application_id, values)


def note_other_times(connection: Connection, application_id: int) -> None:
    """Look for the newest run of an application, after the time of a run has changed."""
    newest = select(func.max(RUN_TIME)).where(runs.c.application_id == application_id)
    _change(connection, application_id, {"newest": newest.scalar_subquery()})


def note_new_times(
    connection: Connection, application_id: int, io_seconds: float, stake_seconds: float
) -> None:
    """Add the times of new insights, less those of the older ones in whose place they are."""
    more = {"io_seconds": io_seconds, "stake_seconds": stake_seconds}
    values = {name: applications_table.c[name] + seconds for name, seconds in more.items()}
    _change(connection, application_id, values)


def note_lost_times(connection: Connection, application_id: int) -> None:
    """Add up the times of an application's insights, after some were deleted."""
    of_runs = (
        select(*(func.coalesce(func.sum(insights.c[name]), 0.0) for name in _TIMES))
        .join(runs, insights.c.run_id == runs.c.id)
        .where(runs.c.application_id == application_id)
    )
    times = dict(zip(_TIMES, connection.execute(of_runs).one(), strict=True))
    _change(connection, application_id, times)


def note_lost_runs(connection: Connection, application_id: int, number: int) -> None:
    """Count fewer runs of an application, after they were deleted; without runs delete it too.

    Decisions for its jobs then belong to no application: SQLite gives its id to another one.
    """
    of = applications_table.c.id == application_id
    _change(connection, application_id, {"runs": applications_table.c.runs - number})
    if connection.scalar(select(applications_table.c.runs).where(of)):
        note_other_times(connection, application_id)
        note_lost_times(connection, application_id)
        return
    theirs = update(decisions).where(decisions.c.application_id == application_id)
    connection.execute(theirs.values(application_id=None))
    connection.execute(delete(applications_table).where(of))


def _change(connection: Connection, application_id: int, values: Mapping[str, Any]) -> None:
    of = applications_table.c.id == application_id
    connection.execute(update(applications_table).where(of).values(dict(values)))


def id_of_application(connection: Connection, system_id: int, executable: str, user: str) -> int:
    """The id of an application, which is created if the database does not have it yet."""
    values = {"in_system": system_id, "of_user": user, "path": executable}
    known = connection.scalar(_FIND, values)
    if known is not None:
        return int(known)
    query = insert(applications_table).values(
        system_id=system_id, executable=executable, program=program_of(executable), user=user
    )
    [key] = connection.scalars(query.returning(applications_table.c.id))
    return int(key)


def application_of_row(row: RowMapping) -> Application:
    """The application in a row that has the `APPLICATION_COLUMNS`."""
    names = ("system", "executable", "program", "user")
    return Application(row["application_id"], *(row[name] for name in names))


def checked_id(key: int, kind: str) -> int:
    """Return an id that fits into a column of the database."""
    if not 0 <= key <= LARGEST_ID:
        raise UnknownNameError(f"the database has no {kind} {key}")
    return key


def _summary(row: RowMapping) -> ApplicationSummary:
    return ApplicationSummary(application_of_row(row), *(row[name] for name in _HISTORY))
