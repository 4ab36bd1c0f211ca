"""DuckDB as the engine of queries, on tables in memory or on a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa

from ioncast.warehouse.queries import Query, in_duckdb
from ioncast.warehouse.schema import SCHEMAS
from ioncast.warehouse.views import (
    LOSING,
    UnreadableStoreError,
    check_extractor,
    files_of,
    view_of,
    without_decimals,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

Ask = Callable[[Query, Mapping[str, Any]], pa.Table]
"""A function that answers a query with values of its parameters."""

# Between two interrupts: the first one may hit no query, but the moment before one.
_INTERRUPTED_EACH_S = 0.1


@dataclass(frozen=True)
class EngineLimits:
    """The most that all queries of an engine may take together, and the most rows of an answer."""

    seconds: float
    memory_mib: int
    threads: int
    rows: int


class TooLargeQueryError(InputError):
    """A query that needs more time or memory than it may take."""


@contextmanager
def asking(
    data: Path | Mapping[str, pa.Table], *, limits: EngineLimits | None = None
) -> Iterator[Ask]:
    """Open a store, or tables in memory, for queries.

    A query reads no files but those of the store, and writes none, whoever wrote it. With limits,
    an answer has at most `limits.rows` rows, and nothing is moved from memory to a disk.

    Raises
    ------
    UnreadableStoreError
        If the store cannot be read, or a newer ioncast wrote it.
    TooLargeQueryError
        If the limits do not suffice.
    InputError
        If DuckDB rejects a query.
    """
    config: dict[str, Any] = {}
    if limits is not None:
        memory = f"{limits.memory_mib}MiB"
        config = {"threads": limits.threads, "memory_limit": memory, "temp_directory": ""}
    with (
        duckdb.connect(":memory:", config=config) as database,
        _ended_in_time(database, limits),
    ):
        try:
            _open(database, data)
        except duckdb.Error as error:
            where = str(data) if isinstance(data, Path) else "tables"
            raise _failure(error, where, limits, UnreadableStoreError) from error
        yield lambda query, values: _answer(database, query, values, limits)


@contextmanager
def _ended_in_time(
    database: duckdb.DuckDBPyConnection, limits: EngineLimits | None
) -> Iterator[None]:
    """Interrupt queries from the end of their time on."""
    if limits is None:
        yield
        return
    first_s, is_done = limits.seconds, Event()

    def watch() -> None:
        wait_s = first_s
        while not is_done.wait(wait_s):
            database.interrupt()
            wait_s = _INTERRUPTED_EACH_S

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        is_done.set()
        watching.join()


def _answer(
    database: duckdb.DuckDBPyConnection,
    query: Query,
    values: Mapping[str, Any],
    limits: EngineLimits | None,
) -> pa.Table:
    try:
        text = in_duckdb(query.text)
        kinds = [statement.type for statement in database.extract_statements(text)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise InputError("a query is one select, without other commands", where=query.name)
        answer = database.sql(text, params=dict(values))
        if limits is not None:
            answer = answer.limit(limits.rows)
        return without_decimals(answer.to_arrow_table())
    except duckdb.Error as error:
        raise _failure(error, query.name, limits) from error


def _failure(
    error: duckdb.Error,
    where: str,
    limits: EngineLimits | None,
    otherwise: type[InputError] = InputError,
) -> InputError:
    """Make an error of ours of DuckDB's."""
    if limits is not None and isinstance(error, duckdb.InterruptException):
        return TooLargeQueryError(f"this takes longer than {limits.seconds:g} s", where=where)
    if limits is not None and isinstance(error, duckdb.OutOfMemoryException):
        what = f"this takes more than {limits.memory_mib} MiB of memory"
        return TooLargeQueryError(what, where=where)
    first = visible(str(error).split("\n", 1)[0])
    kind = UnreadableStoreError if isinstance(error, duckdb.IOException) else otherwise
    what = "the query fails" if kind is InputError else "the store cannot be read"
    return kind(f"{what}: {first}", where=where)


def _open(database: duckdb.DuckDBPyConnection, data: Path | Mapping[str, pa.Table]) -> None:
    if isinstance(data, Path):
        _open_store(database, data)
        database.execute("set allowed_directories = [?]", [str(data)])
    else:
        for name, table in data.items():
            database.register(name, table)
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")


def _open_store(database: duckdb.DuckDBPyConnection, store: Path) -> None:
    # Otherwise each query reads the schemas of all bundles again.
    database.execute("set parquet_metadata_cache = true")
    open_bundles(database, store)
    [[newest]] = database.sql("select max(extractor) from raw_jobs").fetchall()
    check_extractor(newest, store)
    database.execute(f"create temp table losing as {LOSING}")
    [[losing]] = database.sql("select count(*) from losing").fetchall()
    for name in SCHEMAS:
        database.execute(f"create view {name} as {view_of(name, are_twice=losing > 0)}")


def open_bundles(database: duckdb.DuckDBPyConnection, store: Path) -> None:
    """Make a view of each table with the rows of all bundles; columns that these lack are null."""
    for name, schema in SCHEMAS.items():
        database.register(f"empty_{name}", schema.empty_table())
        pattern = files_of(store, name)
        stored = (
            "union all by name select * from read_parquet("
            f"{_quoted(pattern)}, union_by_name = true, hive_partitioning = true,"
            " hive_types = {'bundle': varchar})"
        )
        database.execute(
            f"create view raw_{name} as select *, null::varchar as bundle from empty_{name}"
            f" {stored if pattern else ''}"
        )


def _quoted(text: str | None) -> str:
    return "'" + (text or "").replace("'", "''") + "'"
