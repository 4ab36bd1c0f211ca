"""Applications in the database: each is a program of a user on a system."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, bindparam, func, insert, or_, select

from benchdb.store.accepted_values import is_text
from benchdb.store.schema import applications as applications_table
from benchdb.store.schema import runs, systems
from ioncast_base.errors import UnknownNameError
from ioncast_base.limits import LARGEST_ID


@dataclass(frozen=True)
class Application:
    """A program of a user on a system.

    Attributes
    ----------
    id : int
        The application's id in the database.
    system : str
        The system that the program runs on.
    executable : str
        The executable as the log names it, usually with its folder.
    program : str
        The executable without its folder.
    user : str
        The user who runs the program.
    """

    id: int
    system: str
    executable: str
    program: str
    user: str


@dataclass(frozen=True)
class ApplicationSummary:
    """An application with the size and the age of its history.

    Attributes
    ----------
    application : Application
        The application itself.
    runs : int
        Number of runs in its history.
    newest : str
        Start of the newest run, or the time when it was stored if its start is unknown; ISO 8601
        in UTC.
    """

    application: Application
    runs: int
    newest: str


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
_SUMMARIES = select(
    *APPLICATION_COLUMNS,
    select(func.count())
    .where(runs.c.application_id == applications_table.c.id)
    .scalar_subquery()
    .label("runs"),
    select(func.max(RUN_TIME))
    .where(runs.c.application_id == applications_table.c.id)
    .scalar_subquery()
    .label("newest"),
).join_from(applications_table, systems)
_SUMMARY = _SUMMARIES.where(applications_table.c.id == bindparam("id"))


def program_of(executable: str) -> str:
    """The executable without its folder.

    Examples
    --------
    >>> program_of("/opt/hacc/bin/hacc_io"), program_of("hacc_io")
    ('hacc_io', 'hacc_io')
    """
    return executable.rstrip("/").rpartition("/")[2]


def application(connection: Connection, application_id: int) -> ApplicationSummary:
    """Read one application.

    Raises
    ------
    UnknownNameError
        If the database has no application with this id.
    """
    key = {"id": checked_id(application_id, "application")}
    row = connection.execute(_SUMMARY, key).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"the database has no application {application_id}")
    return _summary(row)


def applications(
    connection: Connection,
    *,
    system: str | None = None,
    search: str | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[ApplicationSummary]:
    """List applications in the order of their ids.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction.
    system : str, optional
        List only applications of this system; an unknown system has no applications.
    search : str, optional
        List only applications whose executable or user contains this text. Upper and lower case
        are the same (in SQLite only for ASCII letters).
    after : int
        List only applications with greater ids, for the next page.
    limit : int
        List at most this many applications.
    """
    if not is_text(system) or not is_text(search) or after >= LARGEST_ID:
        return []
    query = _SUMMARIES.where(applications_table.c.id > after)
    if system is not None:
        query = query.where(systems.c.name == system)
    if search:
        found = (applications_table.c.executable, applications_table.c.user)
        query = query.where(or_(*(each.icontains(search, autoescape=True) for each in found)))
    query = query.order_by(applications_table.c.id).limit(limit)
    return [_summary(row) for row in connection.execute(query).mappings()]


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
    """Return an id that fits into a column of the database.

    Raises
    ------
    UnknownNameError
        If the id does not fit, so that no `kind` can have it.
    """
    if not 0 <= key <= LARGEST_ID:
        raise UnknownNameError(f"the database has no {kind} {key}")
    return key


def _summary(row: RowMapping) -> ApplicationSummary:
    return ApplicationSummary(application_of_row(row), row["runs"], row["newest"])
