"""Compares the tables of runs with those of the first one, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ioncast.insights.tables.characterising import Characterisation
from ioncast.insights.tables.values import Characteristic, Table, Value

TOLERANCE = 0.05
Key = tuple[str, str]


@dataclass(frozen=True)
class ComparedValue:
    """A characteristic of a run (None if its table lacks it) beside the first run.

    `ratio` is its value over the first run's; None if one of them is not a number other than 0.
    """

    row: Characteristic | None
    ratio: float | None
    differs: bool


@dataclass(frozen=True)
class ComparedTable:
    """A table of several runs side by side; people need not see the `rare` rows where all are 0."""

    name: str
    title: str
    rows: tuple[tuple[ComparedValue, ...], ...]
    rare: frozenset[Key]


def compare(
    runs: Sequence[Characterisation], tolerance: float = TOLERANCE
) -> tuple[ComparedTable, ...]:
    """Put tables of at least one run beside those of the first; for `tolerance` see `differs`."""
    return tuple(
        _compared(tables, tolerance) for tables in zip(*(run.tables for run in runs), strict=True)
    )


def present(cells: Sequence[ComparedValue]) -> list[Characteristic]:
    """List the rows of the runs that have the characteristic, at least one."""
    return [cell.row for cell in cells if cell.row is not None]


def compare_rows(
    first: Iterable[Characteristic], rows: Iterable[Characteristic], tolerance: float
) -> Iterator[tuple[Characteristic, ComparedValue]]:
    """Compare rows without zeros: each of them, then those that only `first` has, as zeros."""
    before = {row.key: row for row in first}
    for row in rows:
        yield row, beside(before.pop(row.key, None), row, tolerance)
    for row in before.values():
        zero = row._replace(value=0, share=None)
        yield zero, beside(row, zero, tolerance)


def differs(first: Value, value: Value, tolerance: float) -> bool:
    """Tell whether two values differ by more than a share of the larger one."""
    if isinstance(first, int | float) and isinstance(value, int | float):
        return abs(first - value) > tolerance * max(abs(first), abs(value))
    return first != value


def _compared(tables: Sequence[Table], tolerance: float) -> ComparedTable:
    rows: dict[Key, dict[Key, list[Characteristic | None]]] = {key: {} for key in _merged(tables)}
    for place, table in enumerate(tables):
        for line in table.lines:
            row = line.row(0)
            if row is not None:
                of_line = rows[line.layer, line.name]
                of_line.setdefault(row.key, [None] * len(tables))[place] = row
    return ComparedTable(
        tables[0].name,
        tables[0].title,
        tuple(
            tuple(beside(each[0], row, tolerance) for row in each)
            for of_line in rows.values()
            for each in of_line.values()
        ),
        frozenset().union(*(table.rare() for table in tables)),
    )


def _merged(tables: Sequence[Table]) -> list[Key]:
    """Merge the lines of the tables, each after the line that it follows in its own table."""
    merged: list[Key] = []
    for table in tables:
        place = 0
        for line in table.lines:
            key = (line.layer, line.name)
            if key in merged:
                place = merged.index(key) + 1
            else:
                merged.insert(place, key)
                place += 1
    return merged


def beside(
    first: Characteristic | None, row: Characteristic | None, tolerance: float
) -> ComparedValue:
    """Compare a row of a run with that of the first run; a row that is missing stands for 0."""
    before, value = (None if each is None else each.value for each in (first, row))
    # The slowest process is another one in each run.
    is_rank = row is not None and row.unit == "rank"
    is_other = not is_rank and differs(before or 0, value or 0, tolerance)
    return ComparedValue(row, _ratio(before, value), is_other)


def _ratio(first: Value, value: Value) -> float | None:
    if not isinstance(first, int | float) or not isinstance(value, int | float):
        return None
    return value / first if first and value else None
