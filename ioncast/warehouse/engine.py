"""DuckDB as the engine of queries, on tables in memory or on a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ioncast.warehouse.queries import Query, in_duckdb
from ioncast.warehouse.schema import SCHEMAS
from ioncast.warehouse.views import LOSING, check_extractor, files_of, view_of, without_decimals
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

Ask = Callable[[Query, Mapping[str, Any]], pa.Table]
"""A function that answers a query with values of its parameters."""


@contextmanager
def asking(data: Path | Mapping[str, pa.Table]) -> Iterator[Ask]:
    """Open a store, or tables in memory, for queries.

    A query reads no files but those of the store, and writes none, whoever wrote it.

    Raises
    ------
    InputError
        If a newer ioncast wrote the store, or DuckDB rejects a query.
    """
    with duckdb.connect(":memory:") as database:
        if isinstance(data, Path):
            _open_store(database, data)
            database.execute("set allowed_directories = [?]", [str(data)])
        else:
            for name, table in data.items():
                database.register(name, table)
        database.execute("set enable_external_access = false")
        database.execute("set lock_configuration = true")
        yield lambda query, values: _answer(database, query, values)


def _answer(
    database: duckdb.DuckDBPyConnection, query: Query, values: Mapping[str, Any]
) -> pa.Table:
    try:
        text = in_duckdb(query.text)
        kinds = [statement.type for statement in database.extract_statements(text)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise InputError("a query is one select, without other commands", where=query.name)
        return without_decimals(database.sql(text, params=dict(values)).to_arrow_table())
    except duckdb.Error as error:
        first = visible(str(error).split("\n", 1)[0])
        raise InputError(f"the query fails: {first}", where=query.name) from error


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
