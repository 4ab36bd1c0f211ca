"""Arrow arrays and tables from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.warehouse.schema import SCHEMAS

INDEX = "index"
"""The column with the index of a row's log among the logs of a stack, which no table keeps."""
_PLACE = pa.field("place", pa.int64())

Columns = Mapping[str, Any]
"""Columns of a table by name, lists or arrays; a column that is missing is null."""


def table_of(
    name: str, columns: Columns, places: NDArray[np.int64], logs: pa.Array | None = None
) -> pa.Table:
    """Make a table of rows with the place of their log, and its name in `logs`; NaN becomes null.

    `places` and `logs` have an entry for each log of the stack.
    """
    index = np.asarray(columns[INDEX], np.int64)
    columns = {**columns, _PLACE.name: places[index]}
    if logs is not None:
        columns["log"] = logs.take(pa.array(index))
    schema = SCHEMAS[name].append(_PLACE)
    arrays = [
        _array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(len(index), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def joined(name: str, tables: list[pa.Table]) -> pa.Table:
    """Join tables of some logs each to a table of all logs in their order."""
    table = pa.concat_tables([SCHEMAS[name].append(_PLACE).empty_table(), *tables])
    places = table[_PLACE.name].to_numpy()
    if (places[1:] < places[:-1]).any():
        table = table.take(pa.array(np.argsort(places, kind="stable")))
    return table.drop_columns([_PLACE.name])


def known(values: NDArray[Any], are_known: NDArray[np.bool_]) -> pa.Array:
    """Make an array with null for values that are not known."""
    return pa.array(values, mask=~are_known)


def named(names: tuple[str, ...], indices: NDArray[Any]) -> pa.Array:
    """Make an array of names from their indices."""
    return pa.array(names).take(pa.array(indices))


def hexadecimal(ids: NDArray[np.uint64]) -> pa.Array:
    """Write record ids with 16 digits."""
    digits = np.frombuffer(ids.astype(">u8").tobytes().hex().encode("ascii"), "S16")
    return pa.array(digits, pa.string())


def texts(values: Sequence[str | None]) -> pa.Array:
    """Make an array of texts; bytes that are not UTF-8, lone surrogates in Python, are replaced."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        replaced = [each and each.encode(errors="replace").decode() for each in values]
        return pa.array(replaced, pa.string())


def _array(column: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column.cast(type_)
    if pa.types.is_string(type_):
        return texts(list(column))
    return pa.array(column, type_, from_pandas=True)
