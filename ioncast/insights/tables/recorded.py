"""The tables of runs, made again from records: `from_records` reverses `to_record`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ioncast.insights.tables.characterising import Characterisation
from ioncast.insights.tables.values import Characteristic, Line, Table

Record = Mapping[str, Any]


def from_records(records: Sequence[Record]) -> list[Characterisation]:
    """Make the tables of runs from records of `to_record`, all with the same tables, to compare.

    Records do not tell which rows people need not see, so these are the ones that tell nothing. A
    list of rows may be shorter than it was.
    """
    names = dict.fromkeys(table["name"] for record in records for table in record["tables"])
    return [_run(record, names) for record in records]


def rows_of(table: Record) -> list[Characteristic]:
    """Make the rows of a table's record again."""
    return [
        Characteristic(**dict(zip(table["columns"], row, strict=True))) for row in table["rows"]
    ]


def _run(record: Record, names: Iterable[str]) -> Characterisation:
    rows = {table["name"]: rows_of(table) for table in record["tables"]}
    return Characterisation(
        log=record["log"],
        job=record["job"],
        tables=tuple(
            Table(name, name.capitalize(), tuple(map(_line, rows.get(name, ())))) for name in names
        ),
        files=None,
        not_recorded=tuple(record["not_recorded"]),
        warnings=tuple(record["warnings"]),
    )


def _line(row: Characteristic) -> Line:
    """Make a line of a single group whose row this is."""
    return Line(
        row.layer,
        row.characteristic,
        [row.value],
        row.unit,
        wholes=None if row.share is None else [_whole(row.value, row.share)],
        of=row.of,
        notes=row.note,
        is_rare=not row.tells_something,
    )


def _whole(value: Any, share: float) -> float:
    """The number that has this share; any number if the share is 0."""
    return value / share if share else 1.0
