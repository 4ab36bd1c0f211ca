"""Tables as JSON and CSV for programs; of several runs also ratios to the first one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ioncast.insights.comparison.comparing import Cell, compare, present
from ioncast.insights.tables.characterising import Characterisation, record_of
from ioncast.insights.tables.values import COLUMNS, Row
from summario.phases import streamed

CSV_COLUMNS = ("log", "file", "table", *COLUMNS, "ratio", "differs")
_COMPARED = ("ratio", "differs")
Pair = tuple[Characterisation | None, Characterisation]
"""The run to compare with, and a run."""


def beside_first(runs: Iterable[Characterisation]) -> Iterator[Pair]:
    """Put each run beside the first one."""
    first = None
    for run in runs:
        first = first or run
        yield first, run


def stream_json(pairs: Iterable[Pair], tolerance: float) -> Iterator[str]:
    """Yield a JSON list with an object for each run."""
    return streamed.stream_json([_record(first, run, tolerance)] for first, run in pairs)


def stream_csv(pairs: Iterable[Pair], tolerance: float) -> Iterator[str]:
    """Yield CSV with a row for each characteristic of each run, and of each file if asked for."""
    return streamed.stream_csv(
        CSV_COLUMNS, (_csv_rows(first, run, tolerance) for first, run in pairs)
    )


def _record(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> dict[str, Any]:
    """Convert the tables of a run; beside another one, rows have the columns `_COMPARED` too."""
    record = record_of(run)
    if first is None:
        return record
    tables = [
        {
            "name": table.name,
            "columns": [*COLUMNS, *_COMPARED],
            "rows": [[*_row(cells), cells[-1].ratio, cells[-1].differs] for cells in table.rows],
        }
        for table in compare((first, run), tolerance)
        if table.rows
    ]
    return record | {"tables": tables}


def _row(cells: Sequence[Cell]) -> Row:
    """Select the row of the last run; without a value if only the first one has it."""
    if cells[-1].row is not None:
        return cells[-1].row
    [row] = present(cells)
    return row._replace(value=None, share=None, note="not in this run")


def _csv_rows(
    first: Characterisation | None, run: Characterisation, tolerance: float
) -> Iterator[dict[str, Any]]:
    of_run = {"log": run.log, "file": ""}
    for name, value in run.job.items():
        yield {**of_run, "table": "job", "characteristic": name, "value": _job_text(value)}
    for table in compare((first or run, run), tolerance):
        for cells in table.rows:
            last = cells[-1]
            compared = {"ratio": last.ratio, "differs": int(last.differs)} if first else {}
            yield {**of_run, "table": table.name, **_row(cells)._asdict(), **compared}
    if run.files is not None:
        for path, tables in run.files.rows():
            for name, rows in tables:
                for row in rows:
                    yield {"log": run.log, "file": path, "table": name, **row._asdict()}


def _job_text(value: Any) -> Any:
    """Write modules and mounts as their names and paths."""
    if not isinstance(value, list):
        return value
    return " ".join(each.get("name") or each["path"] for each in value)
