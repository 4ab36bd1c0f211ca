"""Exports all measurements with all their columns, in the same order from every database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from benchdb.measurements.cells import OUTLIER_RULE, outliers
from benchdb.measurements.rates_csv import RATE_COLUMNS
from benchdb.measurements.storing import config_of
from benchdb.store.schema import (
    CONFIGURATION_FIELDS,
    configurations,
    file_rates,
    imports,
    measurements,
    systems,
)
from ioncast_base.visible_text import as_cell

# Columns that are computed from the other columns of a configuration.
_DERIVED_COLUMNS = ("layout", "spatiality", "file_access")
_CONFIGURATION_COLUMNS = (
    "api",
    "operation",
    *_DERIVED_COLUMNS,
    *(name for name in CONFIGURATION_FIELDS if name != "api"),
)
_MEASUREMENT_COLUMNS = (
    "io_nodes",
    "repetition",
    "bandwidth_mib_s",
    "bytes",
    "time_s",
    "started",
    "engine",
    "engine_version",
    "used",
    "note",
    "command",
    "campaign",
)
_IMPORT_COLUMNS = {
    "file": imports.c.file,
    "file_sha256": imports.c.sha256,
    "file_format": imports.c.format,
    "imported_at": imports.c.imported_at,
}
EXPORT_COLUMNS = (
    "system",
    *_CONFIGURATION_COLUMNS,
    *_MEASUREMENT_COLUMNS,
    *_IMPORT_COLUMNS,
    "outlier",
)

RATES_EXPORT_COLUMNS = ("system", *RATE_COLUMNS, *_IMPORT_COLUMNS)

_ROWS_AT_ONCE = 10_000
# A text that starts with a blank needs quotes too, because readers may skip blanks after commas.
_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s')


def export_rows(connection: Connection, system: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield every measurement with its configuration and its import, with `EXPORT_COLUMNS`.

    Rows are ordered by system, configuration, number of I/O nodes, engine and repetition; texts
    sort by their bytes.
    """
    query = (
        select(
            configurations,
            systems.c.name.label("system"),
            *(measurements.c[name] for name in _MEASUREMENT_COLUMNS),
            *(column.label(name) for name, column in _IMPORT_COLUMNS.items()),
        )
        .join_from(measurements, configurations)
        .join(systems, systems.c.id == measurements.c.system_id)
        .join(imports, imports.c.id == measurements.c.import_id)
        .order_by(
            _by_bytes(connection, systems.c.name),
            _by_bytes(connection, configurations.c.pattern),
            measurements.c.io_nodes,
            _by_bytes(connection, measurements.c.engine),
            measurements.c.repetition,
        )
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    if system is not None:
        query = query.where(systems.c.name == system)
    shown: tuple[int, dict[str, Any]] = (0, {})
    rows = connection.execute(query).mappings()
    for _, cell in groupby(rows, key=itemgetter("system", "id", "io_nodes", "engine")):
        repetitions = list(cell)
        if repetitions[0]["id"] != shown[0]:
            shown = (repetitions[0]["id"], _configuration(dict(repetitions[0])))
        for row, rule in zip(repetitions, _rules(repetitions), strict=True):
            yield {
                "system": row["system"],
                **shown[1],
                **{name: row[name] for name in (*_MEASUREMENT_COLUMNS, *_IMPORT_COLUMNS)},
                "outlier": rule,
            }


def export_rates(connection: Connection, system: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield every rate of files with its import, by system and in the order of the imports."""
    query = (
        select(
            systems.c.name.label("system"),
            *(file_rates.c[name] for name in RATE_COLUMNS),
            *(column.label(name) for name, column in _IMPORT_COLUMNS.items()),
        )
        .select_from(file_rates)
        .join(systems, systems.c.id == file_rates.c.system_id)
        .join(imports, imports.c.id == file_rates.c.import_id)
        .order_by(_by_bytes(connection, systems.c.name), file_rates.c.id)
    )
    if system is not None:
        query = query.where(systems.c.name == system)
    for row in connection.execute(query).mappings():
        yield dict(row)


def csv_lines(
    rows: Iterable[dict[str, Any]], columns: Sequence[str] = EXPORT_COLUMNS
) -> Iterator[str]:
    """The rows as lines of CSV with a header; numbers keep all their digits.

    A text that a spreadsheet would run as a formula gets an apostrophe, which importers remove.
    """
    yield ",".join(columns) + "\n"
    for row in rows:
        yield ",".join(map(_cell, row.values())) + "\n"


def write_csv(
    rows: Iterable[dict[str, Any]], path: Path, columns: Sequence[str] = EXPORT_COLUMNS
) -> None:
    """Write rows with the columns of the export as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(rows, columns))


def _rules(cell: Sequence[RowMapping]) -> list[str | None]:
    """For each repetition of a cell, `OUTLIER_RULE` if it is an outlier, else None."""
    flags = iter(outliers([row["bandwidth_mib_s"] for row in cell if row["used"]]))
    return [OUTLIER_RULE if row["used"] and next(flags) else None for row in cell]


def _by_bytes(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """Sort a text by its bytes, as SQLite does, and not by the rules of a language."""
    return column.collate("C") if connection.dialect.name == "postgresql" else column


def _configuration(row: dict[str, Any]) -> dict[str, Any]:
    config = config_of(row)
    derived = {name: getattr(config, name) for name in _DERIVED_COLUMNS}
    return {name: (row | derived)[name] for name in _CONFIGURATION_COLUMNS}


def _cell(value: object) -> str:
    if isinstance(value, str):
        text = as_cell(value)
        return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
    if value is None:
        return ""
    return str(int(value) if isinstance(value, bool) else value)
