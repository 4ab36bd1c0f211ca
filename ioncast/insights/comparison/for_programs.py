"""Tables as JSON and CSV for programs; of several runs also ratios to the first one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ioncast.insights.comparison.comparing import ComparedValue, compare, compare_rows, present
from ioncast.insights.tables.characterising import Characterisation, file_records, to_record
from ioncast.insights.tables.values import COLUMNS, Characteristic
from summario.phases import streamed

CSV_COLUMNS = ("log", "file", "table", *COLUMNS, "ratio", "differs")
_COMPARED = ("ratio", "differs")
# The end of an object that is written with an indent.
_END = "\n}"
Pair = tuple[Characterisation | None, Characterisation]
"""The run to compare with, and a run."""


def beside_first(runs: Iterable[Characterisation]) -> Iterator[Pair]:
    """Put each run beside the first one."""
    first = None
    for run in runs:
        first = first or run
        yield first, run


def stream_json(pairs: Iterable[Pair], tolerance: float) -> Iterator[str]:
    """Yield a JSON list with an object for each run; a log of many files comes in pieces."""
    before = "["
    for first, run in pairs:
        record = json.dumps(_record(first, run, tolerance), indent=1)
        yield f'{before}{record.removesuffix(_END)},\n "files": ['
        for number, file in enumerate(_file_records(first, run, tolerance)):
            yield f"{',' if number else ''}\n{json.dumps(file)}"
        yield "]}"
        before = ",\n"
    yield "[]" if before == "[" else "]"


def stream_csv(pairs: Iterable[Pair], tolerance: float) -> Iterator[str]:
    """Yield CSV with a row for each characteristic of each run, and of each file if asked for."""
    return streamed.stream_csv(
        CSV_COLUMNS, (batch for first, run in pairs for batch in _batches(first, run, tolerance))
    )


def _record(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> dict[str, Any]:
    """Convert a run without its files; beside another one, rows have `_COMPARED` too."""
    record = to_record(run)
    if first is None:
        return record
    tables = [
        _compared_record(table.name, [(_row(cells), cells[-1]) for cells in table.rows])
        for table in compare((first, run), tolerance)
        if table.rows
    ]
    return record | {"tables": tables}


def _compared_record(
    name: str, rows: Iterable[tuple[Characteristic, ComparedValue | None]]
) -> dict[str, Any]:
    return {
        "name": name,
        "columns": [*COLUMNS, *_COMPARED],
        "rows": [
            [*row, *((None, None) if cell is None else (cell.ratio, cell.differs))]
            for row, cell in rows
        ],
    }


def _file_records(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> Iterator[dict[str, Any]]:
    if first is None:
        yield from file_records(run)
        return
    for path, tables in _compared_files(first, run, tolerance):
        yield {"path": path, "tables": [_compared_record(*table) for table in tables]}


_ComparedRows = list[tuple[Characteristic, ComparedValue | None]]


def _compared_files(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> Iterator[tuple[str, list[tuple[str, _ComparedRows]]]]:
    """Compare each file with the file of the same path in the first run, if it has one."""
    files = run.files
    if files is None:
        return
    first_files = first.files if first is not None else None
    for path, group in files.paths_and_groups():
        tables = files.rows(group)
        if first_files is None or path not in first_files.group_of:
            yield path, [(name, [(row, None) for row in rows]) for name, rows in tables.items()]
        else:
            before = first_files.rows(first_files.group_of[path])
            yield path, list(_compared_tables(before, tables, tolerance))


def _compared_tables(
    before: dict[str, list[Characteristic]],
    tables: dict[str, list[Characteristic]],
    tolerance: float,
) -> Iterator[tuple[str, _ComparedRows]]:
    for name in dict.fromkeys([*before, *tables]):
        yield name, list(compare_rows(before.get(name, []), tables.get(name, []), tolerance))


def _row(cells: Sequence[ComparedValue]) -> Characteristic:
    """Select the row of the last run; without a value if only the first one has it."""
    if cells[-1].row is not None:
        return cells[-1].row
    [row] = present(cells)
    return row._replace(value=None, share=None, note="not in this run")


def _batches(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> Iterator[Iterable[dict[str, Any]]]:
    """Yield the rows of a run, then those of each of its files."""
    yield table_rows(first, run, tolerance)
    for path, tables in _compared_files(first, run, tolerance):
        yield (
            {"log": run.log, "file": path, "table": name, **_csv_row(row, cell)}
            for name, rows in tables
            for row, cell in rows
        )


def table_rows(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> Iterator[dict[str, Any]]:
    """Yield a row with `CSV_COLUMNS` for each characteristic of a run, beside those of another."""
    of_run = {"log": run.log, "file": ""}
    for name, value in run.job.items():
        yield {**of_run, "table": "job", "characteristic": name, "value": _job_text(value)}
    for table in compare((first or run, run), tolerance):
        for cells in table.rows:
            cell = cells[-1] if first is not None else None
            yield {**of_run, "table": table.name, **_csv_row(_row(cells), cell)}


def _csv_row(row: Characteristic, cell: ComparedValue | None) -> dict[str, Any]:
    """Convert a row, which may be compared with that of the first run."""
    compared = () if cell is None else (cell.ratio, int(cell.differs))
    return dict(zip((*COLUMNS, *_COMPARED), (*row, *compared), strict=False))


def _job_text(value: Any) -> Any:
    """Write modules and mounts as their names and paths."""
    if not isinstance(value, list):
        return value
    return " ".join(each.get("name") or each["path"] for each in value)
