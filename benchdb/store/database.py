"""Opens the database, upgrades it, and begins its transactions."""

from __future__ import annotations

import errno
import os
import sqlite3
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

from ioncast_base.errors import DatabaseError, InputError, NewerDatabaseError, missing_package

ANOTHER = "name another database with --db or IONCAST_DB"
NEWEST = "initial"
# The versions of `migrations`, of which each one but the newest is upgraded.
KNOWN = frozenset({NEWEST})
# The key of PostgreSQL's advisory lock; every ioncast must use the same number.
_WRITERS_LOCK = 0x10CA57
# SQLSTATE codes for writing in a read-only transaction, and for missing privileges.
_READ_ONLY_TRANSACTION, _NO_PRIVILEGE = "25006", "42501"
_UNDEFINED_TABLE = "42P01"
_SQLITE_READONLY = 8
_PSYCOPG = "psycopg"
_OPTION = "--db or IONCAST_DB"
_SHARE_FOR_LOCKS = 0.9
# A server whose host swaps may need some seconds for a new connection.
_OPENING_S = 30.0


def default_location() -> Path:
    """The SQLite file that is used if the user names no database."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "ioncast" / "ioncast.sqlite"


def open_database(
    location: str | Path | None = None, *, create: bool = True, patience_s: float | None = None
) -> Engine:
    """Open a database, and upgrade it if its version is old.

    Parameters
    ----------
    location : str or Path, optional
        An SQLite file or a SQLAlchemy URL; `default_location` by default.
    create : bool
        Create an SQLite file that does not exist. If False, a missing file reads as an empty
        database, so a mistyped name creates no file.
    patience_s : float, optional
        Longest wait for a connection to PostgreSQL, and then for its first answers, in seconds; 30
        by default. psycopg waits at least 2 s for a connection.

    Raises
    ------
    InputError
        If the URL is not valid, or its driver is not installed.
    DatabaseError
        If the database cannot be reached, read or upgraded, or does not answer.
    NewerDatabaseError
        If a newer ioncast upgraded the database.
    """
    engine = _create_engine(str(location or default_location()), create)
    where = shown(engine.url)
    try:
        version = _version_within(engine, _OPENING_S if patience_s is None else patience_s, where)
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
            remedy=_remedy(reason),
        ) from error
    return engine


def _version_within(engine: Engine, patience_s: float, where: str) -> str | None:
    """Read the version of the database, or give up if PostgreSQL does not answer in time.

    Later connections wait as long as the server needs: an import or an upgrade may be one long
    statement, or wait for another writer.
    """
    if engine.driver == _PSYCOPG:
        engine = create_engine(engine.url, poolclass=NullPool)
        _limit_silence(engine, patience_s)
    with engine.connect() as connection:
        return _version(connection, where)


def existing_database(
    location: str | Path | None, *, patience_s: float, silence_s: float | None = None
) -> Engine:
    """Make an engine for a program that runs for months and uses an existing database.

    The engine neither creates nor upgrades the database. If the database is missing, each
    `transaction` raises a DatabaseError until that changes; if a newer ioncast upgraded it, a new
    connection raises a NewerDatabaseError. Each transaction opens an SQLite file by its name, so a
    file that was moved away is never written to.

    Parameters
    ----------
    location : str or Path, optional
        An SQLite file or a SQLAlchemy URL, as for `open_database`.
    patience_s : float
        Longest wait for a connection and for a lock, in seconds; PostgreSQL's driver waits at
        least 2 s for a new connection.
    silence_s : float, optional
        Longest wait for any answer of PostgreSQL, in seconds; `patience_s` by default. A program
        whose statements may take longer than that gives more.

    Raises
    ------
    InputError
        If the URL is not valid, or its driver is not installed.
    """
    place = str(location or default_location())
    url = _parse(place) if "://" in place else URL.create("sqlite", database=place)
    if url.get_backend_name() == "sqlite":
        engine = _existing_sqlite(url, patience_s)
    else:
        silence_s = patience_s if silence_s is None else silence_s
        engine = _existing_postgresql(url, patience_s, silence_s)

    def check_version(connection: Any, _record: object) -> None:
        _check_known(_version_of(connection), shown(engine.url))

    # After the limits of time, which it needs itself.
    event.listen(engine, "connect", check_version)
    return engine


def _existing_postgresql(url: URL, patience_s: float, silence_s: float) -> Engine:
    milliseconds = round(patience_s * 1000)
    # The server's error about a lock comes just before the connection would be given up.
    for_lock = round(milliseconds * _SHARE_FOR_LOCKS)
    engine = _with_driver(
        url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url,
        pool_pre_ping=True,
        pool_timeout=patience_s,
        connect_args={
            "connect_timeout": max(int(patience_s), 2),
            "options": f"-c lock_timeout={for_lock} -c statement_timeout={4 * milliseconds}",
        },
    )
    event.listen(engine, "handle_error", _leave_read_only)
    if engine.driver == _PSYCOPG:
        _limit_silence(engine, silence_s)
    return engine


def _limit_silence(engine: Engine, patience_s: float) -> None:
    # psycopg is optional, and an SQLite file does not need it.
    from benchdb.store.silent_server import limit_silence  # noqa: PLC0415

    limit_silence(engine, patience_s)


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
def opened_database(
    location: str | Path | None = None, *, create: bool = True, patience_s: float | None = None
) -> Iterator[Engine]:
    """Open a database for a block as `open_database` does; close its connections at the end."""
    engine = open_database(location, create=create, patience_s=patience_s)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def transaction(engine: Engine, *, write: bool = False) -> Iterator[Connection]:
    """Run a block in one transaction; if the block fails, nothing is stored.

    Only one writer at a time works on a database. If it rejects a statement, stays locked, does not
    answer or has no free connection, a DatabaseError is raised.
    """
    is_ending = False
    try:
        with engine.execution_options(write=write).begin() as connection:
            yield connection
            is_ending = write
    except (SqlError, NoConnection) as error:
        # Without an answer to a COMMIT nobody knows whether the server did it.
        is_unknown = is_ending and getattr(error, "connection_invalidated", False)
        raise DatabaseError(
            f"the database reports an error: {getattr(error, 'orig', error)}",
            where=shown(engine.url),
            remedy="the data may have been stored" if is_unknown else "nothing was stored",
        ) from error


@contextmanager
def transaction_on(location: str | Path | None, *, write: bool = False) -> Iterator[Connection]:
    """Run a block in one transaction on an existing database; None is `default_location`."""
    with (
        opened_database(location, create=False) as database,
        transaction(database, write=write) as connection,
    ):
        yield connection


def shown(url: URL) -> str:
    """The location of a database for messages, without secrets."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    place = {key: value for key, value in url.query.items() if key in {"host", "port"}}
    return url.set(query=place).render_as_string(hide_password=True)


def without_password(location: str) -> str:
    """A location to be written to a file: with absolute paths, and without a password."""
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
    """Open a database to read it; the default file reads as an empty database if it is missing.

    Raises
    ------
    DatabaseError
        If an SQLite file that the user names does not exist, or the database cannot be read.
    """
    missing = missing_file(location)
    if missing is not None and location is not None:
        raise DatabaseError(
            "the database does not exist",
            where=str(missing),
            remedy=f"`ioncast bench import` creates it, or {ANOTHER}",
        )
    with opened_database(location, create=False) as engine, transaction(engine) as connection:
        yield connection


def missing_file(location: str | Path | None) -> Path | None:
    """The SQLite file that a location names, if it does not exist; else None."""
    file = _file_of(_url(str(location or default_location())))
    return file if file and not file.exists() else None


def _url(place: str) -> URL:
    return _parse(place) if "://" in place else URL.create("sqlite", database=place)


def _file_of(url: URL) -> Path | None:
    """The SQLite file of a URL; None for other databases and for URLs with SQLite's options."""
    is_file = url.get_backend_name() == "sqlite" and url.database and "uri" not in url.query
    return Path(url.database or "") if is_file else None


def _create_engine(place: str, create: bool) -> Engine:
    url = _url(place)
    file = _file_of(url)
    if file is not None:
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
            f"the folder of the database cannot be created: {error.strerror}",
            where=place,
            remedy=ANOTHER,
        ) from error


def _with_driver(url: URL, **options: Any) -> Engine:
    """Create an engine whose transactions begin as `transaction` promises."""
    try:
        if url.get_backend_name() == "sqlite" and "mode" in url.query and "uri" not in url.query:
            # SQLAlchemy ignores `mode` without `uri`, so a read-only URL would write.
            raise ArgumentError("mode also needs uri=true")
        engine = create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise (missing_package(error, _OPTION) or _unusable(error)) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise _unusable(error) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _begin_postgresql)
    return engine


def _unusable(error: Exception) -> InputError:
    return InputError(
        f"the database URL cannot be used: {error.args[0]}",
        where=_OPTION,
        remedy="give an SQLite file or a SQLAlchemy URL, and install its driver",
    )


def _parse(location: str) -> URL:
    """Parse a URL; an error shows no part of it, because any part may belong to a password."""
    try:
        url = make_url(location)
    except (ArgumentError, ValueError) as error:
        raise InputError(
            "the database URL is not valid",
            where=_OPTION,
            remedy="give an SQLite file or a SQLAlchemy URL; in a password, @ is %40",
        ) from error
    if url.password is not None and "@" in f"{url.host}{url.database}":
        raise InputError(
            "the database URL has more than one @",
            where=_OPTION,
            remedy="write %40 for each @ in the user name and password",
        )
    return url


def _remedy(reason: Exception) -> str:
    if _is_read_only(reason):
        return (
            "it must be upgraded or recovered first: open it once as a user who may write to it, or"
            " copy it"
        )
    return ANOTHER


def _is_read_only(reason: Exception) -> bool:
    if isinstance(reason, OSError):
        return reason.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
    if isinstance(reason, sqlite3.Error):
        # Python 3.10 has no error codes. SQLite never translates its messages.
        code = getattr(reason, "sqlite_errorcode", None)
        return "readonly" in str(reason) if code is None else code & 0xFF == _SQLITE_READONLY
    return getattr(reason, "sqlstate", None) in {_READ_ONLY_TRANSACTION, _NO_PRIVILEGE}


def _configure_sqlite(connection: Any, _record: object) -> None:
    # Python's driver begins a transaction late, and none for CREATE TABLE; so `_begin_sqlite`
    # begins it.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 60000")
    # If a long import wrote to the file before its end, readers would be locked out until the end.
    connection.execute("PRAGMA cache_spill = OFF")


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    # One writer at a time, as in SQLite: a writer that upgrades, adds a system or numbers
    # repetitions sees the work of all others. The lock ends with the transaction.
    if connection.get_execution_options().get("write", False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS_LOCK})")
    else:
        # Two queries of a transaction see the same data, as in SQLite.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _leave_read_only(context: ExceptionContext) -> None:
    # A connection that began while the server was read-only would stay read-only.
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY_TRANSACTION:
        context.is_disconnect = True


def _version(connection: Connection, where: str) -> str | None:
    """The version of a database of ioncast; None for an empty database."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version
    if tables:
        raise DatabaseError(
            f"the database belongs to another program: it has a table {tables[0]!r}",
            where=where,
            remedy=ANOTHER,
        )
    return None


def _version_of(connection: Any) -> str | None:
    """The version of the database of a driver's connection; None if it has none yet."""
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT version_num FROM alembic_version")
        row: tuple[str] | None = cursor.fetchone()
    except Exception as error:
        if "no such table" in str(error) or getattr(error, "sqlstate", "") == _UNDEFINED_TABLE:
            return None
        raise
    finally:
        cursor.close()
        connection.rollback()
    return row[0] if row else None


def _check_known(version: str | None, where: str) -> None:
    if version is not None and version not in KNOWN:
        raise NewerDatabaseError(
            f"the database has version {version}, newer than this ioncast",
            where=where,
            remedy="upgrade ioncast, or restore a backup from before the database's upgrade",
        )


def _upgrade(engine: Engine, version: str | None, where: str) -> None:
    # Only a new or old database needs Alembic, whose import takes longer than a query.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    _check_known(version, where)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    with engine.execution_options(write=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
