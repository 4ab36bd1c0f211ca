"""Opening the database: where it is, and bringing it up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, inspect, text
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.exc import DBAPIError as SqlError
from sqlalchemy.exc import TimeoutError as NoConnection

from ioncast_base.errors import DatabaseError, InputError

NEWEST = "0005"
# Any number, as long as every ioncast takes the same.
_WRITERS_LOCK = 0x10CA57
# What a driver says of a database that it may only read.
_READ_ONLY = ("readonly", "read-only", "permission denied")
# The code of SQL for it.
_READ_ONLY_TRANSACTION = "25006"


def default_location() -> Path:
    """The SQLite file of a user who names no database."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "ioncast" / "ioncast.sqlite"


def open_database(location: str | Path | None = None, *, create: bool = True) -> Engine:
    """Open a database, upgrading it as needed.

    Parameters
    ----------
    location : str or Path, optional
        An SQLite file or a SQLAlchemy URL; `default_location` if not given.
    create : bool
        Create an SQLite file that is not there. Without, it reads as an empty database, so
        that a mistyped name leaves nothing behind.

    Raises
    ------
    InputError
        When the URL is none, or its driver is not installed.
    DatabaseError
        When the database cannot be reached, read or upgraded.
    """
    engine = _create_engine(str(location or default_location()), create)
    where = shown(engine.url)
    try:
        with engine.connect() as connection:
            version = _version(connection, where)
        if version != NEWEST:
            _upgrade(engine, version, where)
    except BaseException as error:
        engine.dispose()
        if not isinstance(error, SqlError | OSError):
            raise
        reason = getattr(error, "orig", error)
        raise DatabaseError(
            f"the database cannot be opened: {reason}",
            where=where,
            remedy=_remedy(str(reason)),
        ) from error
    return engine


def existing_database(location: str | Path | None, *, patience_s: float) -> Engine:
    """A database for many short uses: opened for each, never created, upgraded or waited for long.

    That it is away or not up to date shows when it is used, as a DatabaseError of
    `transaction`; when it is back, so it is here. A file that was moved away is never written
    to: each use opens it by its name.

    Parameters
    ----------
    location : str or Path, optional
        As of `open_database`.
    patience_s : float
        How many seconds to wait for a connection, and for a lock.

    Raises
    ------
    InputError
        When the URL is none, or its driver is not installed.
    """
    place = str(location or default_location())
    url = _parse(place) if "://" in place else URL.create("sqlite", database=place)
    if url.get_backend_name() == "sqlite":
        return _existing_sqlite(url, patience_s)
    milliseconds = round(patience_s * 1000)
    engine = _with_driver(
        url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url,
        pool_pre_ping=True,
        pool_timeout=patience_s,
        connect_args={
            "connect_timeout": max(round(patience_s), 1),
            "options": f"-c lock_timeout={milliseconds} -c statement_timeout={4 * milliseconds}",
        },
    )
    event.listen(engine, "handle_error", _leave_read_only)
    return engine


def _existing_sqlite(url: URL, patience_s: float) -> Engine:
    if url.database and "uri" not in url.query:
        file = quote(str(Path(url.database).absolute()))
        url = URL.create("sqlite", database=f"file:{file}", query={"uri": "true", "mode": "rw"})
    engine = _with_driver(url, poolclass=NullPool, connect_args={"timeout": patience_s})

    def shorten(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")

    event.listen(engine, "connect", shorten)
    return engine


@contextmanager
def opened_database(location: str | Path | None = None, *, create: bool = True) -> Iterator[Engine]:
    """`open_database` for a while; its connections are closed at the end."""
    engine = open_database(location, create=create)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def transaction(engine: Engine, *, write: bool = False) -> Iterator[Connection]:
    """All or nothing: what fails in the block leaves no trace.

    Parameters
    ----------
    engine : Engine
        From `open_database`.
    write : bool
        Whether the block will write; writers to one database wait for each other.

    Raises
    ------
    DatabaseError
        When the database refuses or stays locked, or others have all its connections.
    """
    try:
        with engine.execution_options(write=write).begin() as connection:
            yield connection
    except (SqlError, NoConnection) as error:
        raise DatabaseError(
            f"the database refused: {getattr(error, 'orig', error)}",
            where=shown(engine.url),
            remedy="nothing was stored",
        ) from error


def shown(url: URL) -> str:
    """What users know a database by, without what may be secret."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    place = {key: value for key, value in url.query.items() if key in {"host", "port"}}
    return url.set(query=place).render_as_string(hide_password=True)


def without_password(location: str) -> str:
    """A location to be kept in a file: good from every folder, and without a password.

    Raises
    ------
    InputError
        When the location is a URL that is none.
    """
    if "://" not in location:
        return str(Path(location).absolute())
    url = _parse(location)
    name = url.database
    if name and url.get_backend_name() == "sqlite" and "uri" not in url.query:
        name = str(Path(name).absolute())
    bare = URL.create(
        url.drivername,
        username=url.username,
        host=url.host,
        port=url.port,
        database=name,
        query={key: value for key, value in url.query.items() if "password" not in key},
    )
    return bare.render_as_string()


@contextmanager
def reading(location: str | Path | None) -> Iterator[Connection]:
    """Open a database to read it; one that is not there reads as an empty one."""
    with opened_database(location, create=False) as engine, transaction(engine) as connection:
        yield connection


def _create_engine(place: str, create: bool) -> Engine:
    url = _parse(place) if "://" in place else URL.create("sqlite", database=place)
    if url.get_backend_name() == "sqlite" and url.database and "uri" not in url.query:
        file = Path(url.database)
        if create:
            _make_folder(file.parent, place)
        elif not file.exists():
            url = URL.create("sqlite")
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return _with_driver(url)


def _make_folder(folder: Path, place: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(
            f"its folder cannot be made: {error.strerror}",
            where=place,
            remedy="name another with --db or IONCAST_DB",
        ) from error


def _with_driver(url: URL, **options: Any) -> Engine:
    """An engine whose transactions begin as they should."""
    try:
        if url.get_backend_name() == "sqlite" and "mode" in url.query and "uri" not in url.query:
            # SQLAlchemy would ignore what the URL asks for.
            raise ArgumentError("mode needs uri=true beside it")
        engine = create_engine(url, **options)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(
            f"not a database URL that can be used here: {error.args[0]}",
            where="--db",
            remedy="give an SQLite file or a SQLAlchemy URL, and install its driver",
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _begin_postgresql)
    return engine


def _parse(location: str) -> URL:
    """A URL, of which an error shows nothing: any part of it may be of a password."""
    try:
        url = make_url(location)
    except (ArgumentError, ValueError) as error:
        raise InputError(
            "not a database URL",
            where="--db",
            remedy="give an SQLite file or a SQLAlchemy URL; in a password, @ is %40",
        ) from error
    if url.password is not None and "@" in f"{url.host}{url.database}":
        raise InputError(
            "the database URL has more than one @",
            where="--db",
            remedy="write %40 for those in the user's name and password",
        )
    return url


def _remedy(reason: str) -> str:
    if any(words in reason for words in _READ_ONLY):
        return (
            "it must be brought up to date or recovered first: open it once as one who may write"
            " to it, or copy it"
        )
    return "name another with --db or IONCAST_DB"


def _configure_sqlite(connection: Any, _record: object) -> None:
    # Python's driver begins transactions late and not for tables; `_begin_sqlite` does it.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 60000")
    # A long import that spills to the file before its end would lock readers out till then.
    connection.execute("PRAGMA cache_spill = OFF")


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    # One writer at a time, as in SQLite: whoever upgrades, names a system or numbers
    # repetitions sees all that others did. The lock ends with the transaction.
    if connection.get_execution_options().get("write", False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS_LOCK})")
    else:
        # Whoever reads twice sees the same, as in SQLite.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _leave_read_only(context: ExceptionContext) -> None:
    # A connection that began while the server was read-only stays so for good.
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY_TRANSACTION:
        context.is_disconnect = True


def _version(connection: Connection, where: str) -> str | None:
    """The revision of a database of ours; None for an empty one."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version
    if tables:
        raise DatabaseError(
            f"the database is another program's: it holds a table {tables[0]!r}",
            where=where,
            remedy="name another with --db or IONCAST_DB",
        )
    return None


def _upgrade(engine: Engine, version: str | None, where: str) -> None:
    # Only a new or old database needs Alembic, which takes longer to import than a query.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise DatabaseError(
            f"the database has version {version}, newer than this ioncast",
            where=where,
            remedy="upgrade ioncast",
        )
    with engine.execution_options(write=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
