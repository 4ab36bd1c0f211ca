from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, QueuePool, create_engine, inspect, text
from sqlalchemy.exc import InterfaceError

import benchdb.store
import ioncast.service.store.tables  # noqa: F401 - the tables of the service
from benchdb.measurements.exports import export_rows
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import (
    KNOWN,
    NEWEST,
    default_location,
    existing_database,
    open_database,
    opened_database,
    transaction,
    without_password,
)
from benchdb.store.schema import metadata, systems
from benchdb.store.systems import system_names
from ioncast_base.errors import DatabaseError, InputError, NewerDatabaseError
from ior_configs import IorConfig
from tests.support.command import run_together

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[3]
CONFIG = IorConfig(write=True, tasks=4, nodes=2)


def store_one(engine: Engine, bandwidth: float = 10.0) -> None:
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system="here",
            file="f",
            content=str(bandwidth).encode(),
            file_format="test",
            rows=[Measurement(CONFIG, 0, bandwidth)],
        )


def tables_in(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows}
    finally:
        connection.close()


def test_a_database_is_created_on_first_use_with_its_folder(tmp_path: Path) -> None:
    place = tmp_path / "new" / "folder" / "bench.sqlite"
    open_database(place).dispose()
    assert tables_in(place) >= {"systems", "configurations", "imports", "measurements"}


def test_without_a_location_the_database_is_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    open_database().dispose()
    assert default_location().is_relative_to(tmp_path)
    assert default_location().is_file()


def test_measurements_are_there_when_the_database_is_opened_again(location: str) -> None:
    engine = open_database(location)
    store_one(engine)
    engine.dispose()
    again = open_database(location)
    with transaction(again) as connection:
        assert system_names(connection) == ["here"]
        assert [row["bandwidth_mib_s"] for row in export_rows(connection)] == [10.0]
    again.dispose()


@pytest.mark.parametrize(
    "name",
    ["plain.sqlite", "with blank.db", "what?.sqlite", "a%20b.sqlite", "#1.sqlite", "größe.sqlite"],
)
def test_a_database_is_the_file_that_was_named(tmp_path: Path, name: str) -> None:
    open_database(tmp_path / name).dispose()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_database_can_be_named_by_its_url(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path}/bench.sqlite").dispose()
    assert "measurements" in tables_in(tmp_path / "bench.sqlite")


def test_the_migrations_make_the_tables_that_the_schema_describes(database: Engine) -> None:
    with database.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_the_migrations_name_every_constraint_as_the_schema_does(database: Engine) -> None:
    found = inspect(database)
    for table in metadata.sorted_tables:
        names = {constraint["name"] for constraint in found.get_unique_constraints(table.name)}
        names |= {key["name"] for key in found.get_foreign_keys(table.name)}
        expected = {str(c.name) for c in table.constraints if c is not table.primary_key}
        assert names == expected, table.name


def test_the_migrations_make_the_indexes_of_the_schema(database: Engine) -> None:
    tables = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "postgresql": "SELECT indexname FROM pg_indexes WHERE starts_with(indexname, 'ix_')",
    }
    with database.connect() as connection:
        found = set(connection.exec_driver_sql(tables[database.dialect.name]).scalars())
    assert found == {index.name for table in metadata.sorted_tables for index in table.indexes}


def test_a_new_database_has_the_newest_version(database: Engine) -> None:
    with database.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == NEWEST


@pytest.mark.promise("service-old-ioncast")
def test_a_database_of_a_newer_ioncast_is_rejected_and_unchanged(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    engine = open_database(place)
    store_one(engine)
    engine.dispose()
    connection = sqlite3.connect(place)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = place.read_bytes()
    with pytest.raises(DatabaseError, match=r"9999.*newer.*upgrade ioncast") as caught:
        open_database(place)
    assert "\n" not in str(caught.value)
    assert place.read_bytes() == before


@pytest.mark.promise("service-old-ioncast")
def test_a_program_that_runs_stores_nothing_in_a_database_of_a_newer_ioncast(
    location: str,
) -> None:
    with opened_database(location) as database:
        store_one(database)
        with transaction(database, write=True) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        before = row_counts(database)
        used = existing_database(location, patience_s=60)
        with pytest.raises(NewerDatabaseError, match=r"9999.*newer.*upgrade ioncast"):
            store_one(used)
        used.dispose()
        assert row_counts(database) == before


def test_all_versions_that_can_be_upgraded_are_known() -> None:
    migrations = Path(benchdb.store.__file__).with_name("migrations")
    versions = ScriptDirectory(str(migrations)).walk_revisions()
    assert {script.revision for script in versions} == KNOWN


@pytest.mark.parametrize("content", [b"job,start\n1,2\n" * 100, b"\x00\xff" * 4096])
def test_a_file_that_is_not_a_database_is_rejected_and_unchanged(
    tmp_path: Path, content: bytes
) -> None:
    place = tmp_path / "notes.txt"
    place.write_bytes(content)
    with pytest.raises(DatabaseError) as caught:
        open_database(place)
    assert str(place) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert place.read_bytes() == content


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises((DatabaseError, InputError)):
        open_database(tmp_path)


def test_a_database_below_a_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((DatabaseError, InputError)):
        open_database(tmp_path / "file" / "bench.sqlite")


@pytest.mark.parametrize(
    "url",
    [
        "://",
        "nonsense://host/name",
        "postgresql+nonsense://host/name",
        "postgresql://host:port/name",
        "sqlite+nonsense:///x",
        "sqlite:///x?mode=ro",
    ],
)
def test_a_url_that_cannot_be_used_is_rejected_in_one_line(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_database(url)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises((InputError, DatabaseError)) as caught:
        open_database(f"sqlite://user:secret@host/{tmp_path}/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@127.0.0.1:1/bench?password=SECRET",
        "postgresql://me:one@127.0.0.1:1/bench?password=SECRET&sslpassword=SECRET",
        "postgresql://me:one@SECRET@127.0.0.1:1/bench",
        "postgresql://me:one@two/SECRET@127.0.0.1:1/bench",
        "postgresql://me:one@two:SECRET@127.0.0.1:1/bench",
    ],
)
def test_no_error_shows_a_password_wherever_it_is_in_the_url(url: str) -> None:
    with pytest.raises((InputError, DatabaseError)) as caught:
        open_database(url)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("postgresql://me:x@host:5/db", "postgresql://me@host:5/db"),
        (
            "postgresql://me@/db?password=x&sslmode=require&sslpassword=x",
            "postgresql://me@/db?sslmode=require",
        ),
        ("sqlite://", "sqlite://"),
        ("sqlite:////data/x.sqlite", "sqlite:////data/x.sqlite"),
        ("/data/a:b@c", "/data/a:b@c"),
    ],
)
def test_a_location_is_written_without_its_password(told: str, kept: str) -> None:
    assert without_password(told) == kept


@pytest.mark.parametrize(
    ("told", "kept"), [("x.sqlite", "{}/x.sqlite"), ("sqlite:///x", "sqlite:///{}/x")]
)
def test_a_location_is_written_with_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, kept: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_password(told) == kept.format(tmp_path)


def test_an_old_file_that_is_read_only_must_be_upgraded_first(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    sqlite3.connect(place).close()
    with pytest.raises(DatabaseError, match=r"readonly.*upgraded.*may write"):
        open_database(f"sqlite:///file:{place}?mode=ro&uri=true")


def test_an_old_database_of_a_read_only_server_must_be_upgraded_first(
    postgresql_location: str,
) -> None:
    engine = create_engine(postgresql_location.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as administrator:
        alter = f"ALTER DATABASE {engine.url.database}"
        administrator.exec_driver_sql(f"{alter} SET default_transaction_read_only = on")
    engine.dispose()
    with pytest.raises(DatabaseError, match=r"upgraded.*may write"):
        open_database(postgresql_location)


def test_a_long_import_does_not_block_readers(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    with opened_database(place) as engine, transaction(engine, write=True) as connection:
        # More than twice the size of SQLite's page cache.
        names = [{"name": f"{number:200}"} for number in range(20_000)]
        connection.execute(systems.insert(), names)
        reader = sqlite3.connect(place, timeout=0)
        assert reader.execute("SELECT count(*) FROM systems").fetchone() == (0,)
        reader.close()


@pytest.mark.parametrize("why", ["no server", "no such database", "another program's", "refused"])
def test_a_password_of_postgresql_is_not_shown(postgresql_location: str, why: str) -> None:
    location = postgresql_location.replace("@", ":secret@")
    if why == "no server":
        location = "postgresql://me:secret@127.0.0.1:1/bench"
    if why == "no such database":
        location = location.replace("?", "-gone?")
    if why == "another program's":
        other = create_engine(location.replace("postgresql:", "postgresql+psycopg:"))
        with other.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE jobs (id integer)")
        other.dispose()
    with (
        pytest.raises(DatabaseError) as caught,
        opened_database(location) as engine,
        transaction(engine, write=True) as connection,
    ):
        connection.exec_driver_sql("INSERT INTO systems (name) VALUES (NULL)")
    line = str(caught.value)
    assert line.startswith("postgresql+psycopg://")
    assert "\n" not in line
    assert "secret" not in line


def test_a_server_can_be_written_to_when_it_is_no_longer_read_only(
    postgresql_location: str,
) -> None:
    setting = "default_transaction_read_only"
    with opened_database(postgresql_location) as database, database.connect() as administrator:
        alter = f"ALTER DATABASE {database.url.database}"
        administrator.exec_driver_sql(f"{alter} SET {setting} = on")
        administrator.commit()
        used = existing_database(postgresql_location, patience_s=60)
        with pytest.raises(DatabaseError, match="read-only"):
            store_one(used)
        administrator.exec_driver_sql(f"{alter} RESET {setting}")
        administrator.commit()
    store_one(used)
    used.dispose()


class BrokenError(Exception):
    pass


def row_counts(database: Engine) -> dict[str, int]:
    with database.connect() as connection:
        return {
            table.name: len(connection.execute(table.select()).all())
            for table in metadata.sorted_tables
        }


def test_a_failed_transaction_stores_nothing(database: Engine) -> None:
    before = row_counts(database)
    with pytest.raises(BrokenError), transaction(database, write=True) as connection:
        store(
            connection,
            system="here",
            file="f",
            content=b"",
            file_format="test",
            rows=[Measurement(CONFIG, 0, 10.0)],
        )
        raise BrokenError
    assert row_counts(database) == before


def test_a_row_that_the_database_rejects_leaves_nothing_of_its_file(database: Engine) -> None:
    nameless: Any = None
    rows = [Measurement(CONFIG, 0, 10.0), Measurement(CONFIG, 0, 10.0, engine=nameless)]
    with pytest.raises(DatabaseError), transaction(database, write=True) as connection:
        store(connection, system="here", file="f", content=b"", file_format="test", rows=rows)
    with transaction(database) as connection:
        assert list(export_rows(connection)) == []
        assert system_names(connection) == []


def test_foreign_keys_are_enforced(database: Engine) -> None:
    insert = (
        "INSERT INTO measurements (system_id, configuration_id, import_id, io_nodes, repetition,"
        " bandwidth_mib_s, engine, used) VALUES (7, 7, 7, 0, 0, 1.0, 'ior', true)"
    )
    with pytest.raises(DatabaseError), transaction(database, write=True) as connection:
        connection.exec_driver_sql(insert)


@pytest.mark.slow
def test_several_processes_may_create_the_database_at_once(location: str) -> None:
    script = (
        f"from benchdb.store.database import open_database; open_database({location!r}).dispose()"
    )
    running = run_together(*[("-c", script)] * 6)
    assert [(done.returncode, done.stderr[-300:]) for done in running] == [(0, "")] * 6
    engine = open_database(location)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_a_first_use_that_was_cut_off_can_be_repeated(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table = Operations.create_table

    def cut_off(self: Operations, name: str, *columns: object, **options: object) -> object:
        if name == "measurements":
            raise BrokenError
        return create_table(self, name, *columns, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Operations, "create_table", cut_off)
        with pytest.raises(BrokenError):
            open_database(location)
    engine = open_database(location)
    store_one(engine)
    engine.dispose()


def test_a_database_without_a_free_connection_is_unavailable(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'db.sqlite'}"
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.05}
    engine = create_engine(url, poolclass=QueuePool, **options)
    with (
        transaction(engine),
        pytest.raises(DatabaseError, match="reports an error"),
        transaction(engine),
    ):
        pass
    engine.dispose()


def test_a_lost_connection_is_an_unavailable_database(tmp_path: Path) -> None:
    with (
        opened_database(tmp_path / "db.sqlite") as engine,
        pytest.raises(DatabaseError, match="the connection is closed"),
        transaction(engine),
    ):
        raise InterfaceError("SELECT 1", {}, Exception("the connection is closed"))
