"""DuckDB as the engine of queries on tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from ioncast.warehouse.queries import Query, in_duckdb
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible


def answer(tables: Mapping[str, pa.Table], query: Query, values: Mapping[str, Any]) -> pa.Table:
    """Answer a query on tables.

    The query can neither read nor write files, whoever wrote it.

    Raises
    ------
    InputError
        If DuckDB rejects the query.
    """
    with duckdb.connect(":memory:") as database:
        for name, table in tables.items():
            database.register(name, table)
        database.execute("set enable_external_access = false")
        database.execute("set lock_configuration = true")
        try:
            return database.sql(in_duckdb(query.text), params=dict(values)).to_arrow_table()
        except duckdb.Error as error:
            first = visible(str(error).split("\n", 1)[0])
            raise InputError(f"the query fails: {first}", where=query.name) from error
