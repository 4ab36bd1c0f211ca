"""Tables of a log, by characteristic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ioncast.insights.facts.gathering import COUNTED_MODULES, facts_of
from ioncast.insights.tables.characterising import Characterisation, characterised
from ioncast.insights.tables.values import Characteristic
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of


def characterisation(*paths: Path, all_files: bool = False, **options: Any) -> Characterisation:
    run = run_of([read_log(path, modules=COUNTED_MODULES) for path in paths])
    return characterised(facts_of(run, all_files=all_files), **options)


def rows_of(found: Characterisation, name: str) -> dict[tuple[str, str], Characteristic]:
    """Read the rows of a table by layer and characteristic."""
    [table] = (table for table in found.tables if table.name == name)
    return {row.key: row for row in table.rows()}


def rows_of_file(found: Characterisation, path: str) -> dict[tuple[str, str, str], Characteristic]:
    """Read the rows of a file by table, layer and characteristic."""
    assert found.files is not None
    tables = found.files.rows(found.files.group_of[path])
    return {(name, *row.key): row for name, rows in tables.items() for row in rows}
