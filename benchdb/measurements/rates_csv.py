"""Rates of files as CSV: the columns of `FileRate`, with the system and the origin in an export."""

from __future__ import annotations

from dataclasses import fields

from benchdb.measurements.csv_rows import (
    Row,
    columns_of,
    count_cell,
    flag_cell,
    number_cell,
    positive_cell,
    text_cell,
)
from benchdb.measurements.file_rates import FILE_OPERATIONS, FileRate
from ioncast_base.errors import InputError

RATE_COLUMNS = tuple(field.name for field in fields(FileRate))


def is_rates(header: str) -> bool:
    """Whether a CSV has rates of files, by its first line."""
    return {"operation", "io_nodes", "files_per_s"} <= columns_of(header)


def rate_of(row: Row) -> FileRate:
    """Read a row; an error names the column."""
    operation = next((name for name in FILE_OPERATIONS if name == row["operation"]), None)
    if operation is None:
        raise InputError(
            f"operation is {row['operation']!r}, not one of {', '.join(FILE_OPERATIONS)}"
        )
    return FileRate(
        operation=operation,
        io_nodes=count_cell(row, "io_nodes"),
        files_per_s=number_cell(row, "files_per_s"),
        tasks=positive_cell(row, "tasks"),
        nodes=positive_cell(row, "nodes") if row.get("nodes") else None,
        files_per_process=(
            positive_cell(row, "files_per_process") if row.get("files_per_process") else None
        ),
        unique_directory=flag_cell(row, "unique_directory"),
        bytes_per_file=count_cell(row, "bytes_per_file"),
        started=text_cell(row, "started"),
        engine_version=text_cell(row, "engine_version"),
        command=text_cell(row, "command"),
        used=flag_cell(row, "used") if row.get("used") else True,
        note=text_cell(row, "note"),
        campaign=text_cell(row, "campaign"),
    )
