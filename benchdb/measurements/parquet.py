"""Writes the export as Parquet, and turns Parquet files into CSV."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Float, Integer

from benchdb.measurements.exports import EXPORT_COLUMNS
from benchdb.store.schema import configurations, measurements
from ioncast_base.errors import InputError, MissingPackageError
from ioncast_base.visible_text import AS_CELL

MAGIC = b"PAR1"
_ROWS_OF_A_GROUP = 20_000


def write_parquet(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Write rows with the columns of the export as Parquet."""
    pa, pq = _pyarrow(str(path))
    schema = pa.schema([(name, _type(pa, name)) for name in EXPORT_COLUMNS])
    rest = iter(rows)
    with pq.ParquetWriter(path, schema) as writer:
        while some := list(islice(rest, _ROWS_OF_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(some, schema=schema))


def csv_of(content: bytes, where: str) -> str:
    """The content of a Parquet file as CSV."""
    pa, pq = _pyarrow(where)
    from pyarrow import compute  # noqa: PLC0415
    from pyarrow.csv import write_csv  # noqa: PLC0415

    def cells(column: Any) -> Any:
        if not pa.types.is_string(column.type):
            return column
        return compute.replace_substring_regex(column, *AS_CELL)

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        # Columns of other names are left out, because CSV may not be able to hold their values.
        names = [name for name in file.schema_arrow.names if name.strip() in EXPORT_COLUMNS]
        table = file.read(names)
        table = pa.table([cells(column) for column in table.columns], names=table.column_names)
        text = pa.BufferOutputStream()
        write_csv(table, text)
        return str(text.getvalue().to_pybytes(), "utf-8")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"this Parquet file cannot be read: {error}", where=where, remedy="write it again"
        ) from error


def _pyarrow(where: str) -> tuple[Any, Any]:
    # The library is large, so it is needed and loaded for Parquet only.
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError("pyarrow", where) from error
    return pa, pq


def _type(pa: Any, name: str) -> Any:
    """The type of a column; a column of neither table is a text."""
    column = next((t.c[name] for t in (measurements, configurations) if name in t.c), None)
    kinds = ((Boolean, pa.bool_()), (Integer, pa.int64()), (Float, pa.float64()))
    found = (kind for sql, kind in kinds if column is not None and isinstance(column.type, sql))
    return next(found, pa.string())
