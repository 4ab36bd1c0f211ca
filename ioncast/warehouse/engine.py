"""DuckDB as the engine of queries, on tables in memory or on a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import duckdb
import pyarrow as pa

from ioncast.warehouse.queries import Query, in_duckdb
from ioncast.warehouse.schema import SCHEMAS
from ioncast.warehouse.views import (
    FAILED,
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
# Columns in memory may take this much, or this share of a limit: queries need memory too.
_KEPT_BYTES, _KEPT_SHARE = 1 << 30, 2 / 3
_BYTES_OF_A_VALUE = 12
_NUMBERS = {each: f"('0x' || {each}[:16])::ubigint as {each}" for each in ("log", "bundle")}
_COMMENT = re.compile("--.*")


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
    data: Path | Mapping[str, pa.Table],
    *,
    limits: EngineLimits | None = None,
    queries: Sequence[Query] = (),
) -> Iterator[Ask]:
    """Open a store, or tables in memory, for queries.

    A query reads no files but those of the store, and writes none, whoever wrote it. With limits,
    an answer has at most `limits.rows` rows, and nothing is moved from memory to a disk. If
    `queries` are given, only they can be asked, which is faster: the columns that they read come
    into memory once, and `log` is a number.

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
    ends_s = inf if limits is None else monotonic() + limits.seconds
    with (
        duckdb.connect(":memory:", config=config) as database,
        _ended_in_time(database, limits),
    ):
        try:
            _open(database, data, limits, queries)
        except duckdb.Error as error:
            where = str(data) if isinstance(data, Path) else "tables"
            raise _failure(error, where, limits, UnreadableStoreError) from error
        yield lambda query, values: _answer(database, query, values, limits, ends_s)


def all_rows(ask: Ask, most: int) -> Ask:
    """Let a function that answers with at most `most + 1` rows reject answers with so many.

    Raises
    ------
    TooLargeQueryError
        With each answer of more than `most` rows, because a part of an answer tells something else.
    """

    def ask_for_all(query: Query, values: Mapping[str, Any]) -> pa.Table:
        answer = ask(query, values)
        if len(answer) > most:
            raise TooLargeQueryError(f"this has more than {most:,} rows", where=query.name)
        return answer

    return ask_for_all


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
    ends_s: float,
) -> pa.Table:
    # Between two interrupts a short query would still have an answer.
    if limits is not None and monotonic() > ends_s:
        raise _too_long(query.name, limits)
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


def _too_long(where: str, limits: EngineLimits) -> TooLargeQueryError:
    return TooLargeQueryError(f"this takes longer than {limits.seconds:g} s", where=where)


def _failure(
    error: duckdb.Error,
    where: str,
    limits: EngineLimits | None,
    otherwise: type[InputError] = InputError,
) -> InputError:
    """Make an error of ours of DuckDB's."""
    if limits is not None and isinstance(error, duckdb.InterruptException):
        return _too_long(where, limits)
    if limits is not None and isinstance(error, duckdb.OutOfMemoryException):
        what = f"this takes more than {limits.memory_mib} MiB of memory"
        return TooLargeQueryError(what, where=where)
    first = visible(str(error).split("\n", 1)[0])
    kind = UnreadableStoreError if isinstance(error, duckdb.IOException) else otherwise
    what = "the query fails" if kind is InputError else "the store cannot be read"
    return kind(f"{what}: {first}", where=where)


def _open(
    database: duckdb.DuckDBPyConnection,
    data: Path | Mapping[str, pa.Table],
    limits: EngineLimits | None,
    queries: Sequence[Query],
) -> None:
    if isinstance(data, Path):
        _open_store(database, data, limits, queries)
        database.execute("set allowed_directories = [?]", [str(data)])
    else:
        for name, table in data.items():
            # Older versions fail where they give Arrow a condition with an unknown value.
            database.register(f"given_{name}", table)
            database.execute(f"create temp table {name} as select * from given_{name}")
            # Some queries ask the rows of bundles, such as whether there are any samples.
            database.execute(f"create temp view raw_{name} as select * from {name}")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")


def _open_store(
    database: duckdb.DuckDBPyConnection,
    store: Path,
    limits: EngineLimits | None,
    queries: Sequence[Query],
) -> None:
    if queries:
        # To keep the order of rows in memory would take as long again.
        database.execute("set preserve_insertion_order = false")
    most_bytes = _KEPT_BYTES if limits is None else limits.memory_mib * _KEPT_SHARE * (1 << 20)
    columns = open_bundles(database, store, queries, most_bytes)
    [[newest]] = database.sql("select max(extractor) from raw_jobs").fetchall()
    check_extractor(newest, store)
    database.execute(f"create temp table losing as {LOSING}")
    [[losing]] = database.sql("select count(*) from losing").fetchall()
    for name, of_table in columns.items():
        view = view_of(name, of_table, are_twice=losing > 0)
        database.execute(f"create view {name} as {view}")


def open_bundles(
    database: duckdb.DuckDBPyConnection,
    store: Path,
    queries: Sequence[Query] = (),
    most_bytes: float = 0.0,
) -> dict[str, list[str]]:
    """Make a view raw_… of each table with the rows of all bundles, and return their columns.

    The columns that `queries` read come into memory instead, as long as tables take at most
    `most_bytes` together. Then 64 bits stand for the SHA-256 of logs and bundles: two of a million
    logs have the same ones with a probability of 3e-8.
    """
    # Otherwise each query reads the schemas of all bundles again.
    database.execute("set parquet_metadata_cache = true")
    columns = {}
    for name, schema in SCHEMAS.items():
        source = _bundles_of(database, store, name)
        kept = _columns_in(queries, name)
        if kept:
            [[rows]] = database.sql(f"select count(*) from {source}").fetchall()
            needed_bytes = rows * len(kept) * _BYTES_OF_A_VALUE
            kept = kept if needed_bytes <= most_bytes else []
            most_bytes -= needed_bytes if kept else 0
        columns[name] = kept or schema.names
        selected = [*columns[name], "bundle"]
        if queries:
            selected = [_NUMBERS.get(each, each) for each in selected]
        database.execute(
            f"create {'temp table' if kept else 'view'} raw_{name} as"
            f" select {', '.join(selected)} from {source}"
        )
    return columns


def _bundles_of(database: duckdb.DuckDBPyConnection, store: Path, table: str) -> str:
    """Write the rows of all bundles as a table of SQL; columns that these lack are null."""
    database.register(f"empty_{table}", SCHEMAS[table].empty_table())
    empty, pattern = f"select *, null::varchar as bundle from empty_{table}", files_of(store, table)
    if pattern is None:
        return f"({empty})"
    # DuckDB before 2.0, the last for Python 3.10, cannot be given a schema here.
    return (
        f"({empty} union all by name select * from read_parquet({_quoted(pattern)},"
        " union_by_name = true, hive_partitioning = true, hive_types = {'bundle': varchar}))"
    )


def _columns_in(queries: Sequence[Query], table: str) -> list[str]:
    """List the columns of a table that queries and its view name; none if they read all.

    Samples of servers stay on the disk, because queries read a short time of them.
    """
    if table == "server_samples":
        return []
    texts = [
        *(_COMMENT.sub("", each.text) for each in queries),
        *((LOSING, FAILED) if queries else ()),
    ]
    reading = [each for each in texts if re.search(rf"(from|join) (raw_)?{table}\b", each)]
    if any(re.search(rf"select \*\s+from {table}\b", each) for each in reading):
        return []
    words = set(re.findall(r"\w+", " ".join(reading)))
    return [each for each in SCHEMAS[table].names if each in words]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
