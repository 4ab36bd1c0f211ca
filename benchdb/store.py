"""Opening the database: where it is, and bringing it up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.exc import DatabaseError as SqlError

from ioncast_errors import DatabaseError, InputError

NEWEST = "0002"
# Any number, as long as every ioncast takes the same.
_WRITERS_LOCK = 0x10CA57


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
    place = str(location or default_location())
    engine = _create_engine(place, create)
    shown = _shown(engine) if "://" in place else place
    try:
        with engine.connect() as connection:
            version = _version(connection, shown)
        if version != NEWEST:
            _upgrade(engine, version, shown)
    except BaseException as error:
        engine.dispose()
        if not isinstance(error, SqlError | OSError):
            raise
        reason = getattr(error, "orig", error)
        raise DatabaseError(
            f"the database cannot be opened: {reason}",
            where=shown,
            remedy="name another with --db or IONCAST_DB",
        ) from error
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
        When the database refuses or stays locked.
    """
    try:
        with engine.execution_options(write=write).begin() as connection:
            yield connection
    except SqlError as error:
        raise DatabaseError(
            f"the database refused: {error.orig}",
            where=_shown(engine),
            remedy="nothing was stored",
        ) from error


def _shown(engine: Engine) -> str:
    """What users know the database by, without its password."""
    if engine.dialect.name == "sqlite" and engine.url.database:
        return engine.url.database
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def reading(location: str | Path | None) -> Iterator[Connection]:
    """Open a database to read it; one that is not there reads as an empty one."""
    with opened_database(location, create=False) as engine, transaction(engine) as connection:
        yield connection


def _create_engine(place: str, create: bool) -> Engine:
    try:
        url = make_url(place) if "://" in place else URL.create("sqlite", database=place)
        if url.get_backend_name() == "sqlite" and url.database and "uri" not in url.query:
            file = Path(url.database)
            if create:
                file.parent.mkdir(parents=True, exist_ok=True)
            elif not file.exists():
                url = URL.create("sqlite")
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(url)
    except OSError as error:
        raise DatabaseError(
            f"its folder cannot be made: {error.strerror}",
            where=place,
            remedy="name another with --db or IONCAST_DB",
        ) from error
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
        raise InputError(
            f"not a database URL that can be used here: {error}",
            where="--db",
            remedy="give an SQLite file or a SQLAlchemy URL, and install its driver",
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _begin_postgresql)
    return engine


def _configure_sqlite(connection: Any, _record: object) -> None:
    # Python's driver begins transactions late and not for tables; `_begin_sqlite` does it.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA busy_timeout = 60000")


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    # One writer at a time, as in SQLite: whoever upgrades, names a system or numbers
    # repetitions sees all that others did. The lock ends with the transaction.
    if connection.get_execution_options().get("write", False):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS_LOCK})")


def _version(connection: Connection, shown: str) -> str | None:
    """The revision of a database of ours; None for an empty one."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version
    if tables:
        raise DatabaseError(
            f"the database is another program's: it holds a table {tables[0]!r}",
            where=shown,
            remedy="name another with --db or IONCAST_DB",
        )
    return None


def _upgrade(engine: Engine, version: str | None, shown: str) -> None:
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
            where=shown,
            remedy="upgrade ioncast",
        )
    with engine.execution_options(write=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
