"""All tables of a run: `characterised` makes them, `to_record` converts them for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from ioncast.insights.facts.values import Facts, Ints
from ioncast.insights.tables.absent_facts import not_recorded
from ioncast.insights.tables.files_table import files
from ioncast.insights.tables.histograms_table import histograms
from ioncast.insights.tables.job_record import job_record
from ioncast.insights.tables.layers_table import layers
from ioncast.insights.tables.libraries_table import libraries
from ioncast.insights.tables.operations_table import operations
from ioncast.insights.tables.pattern_table import pattern
from ioncast.insights.tables.scopes import Scope
from ioncast.insights.tables.sizes_table import sizes
from ioncast.insights.tables.times_table import times
from ioncast.insights.tables.values import COLUMNS, Characteristic, Table
from ioncast_base.visible_text import visible
from ioncast_base.wording import listed

TABLES: tuple[Callable[[Scope], Table], ...] = (
    operations,
    pattern,
    sizes,
    histograms,
    layers,
    times,
    files,
    libraries,
)


@dataclass(frozen=True)
class EachFile:
    """The tables of each file, the one with most bytes first, with its group in `tables`."""

    paths: tuple[str, ...]
    groups: Ints
    tables: tuple[Table, ...]

    @cached_property
    def group_of(self) -> dict[str, int]:
        """The group of each path."""
        return dict(self.paths_and_groups())

    def paths_and_groups(self) -> Iterator[tuple[str, int]]:
        """Yield each file; a damaged log may have a path twice."""
        return zip(self.paths, self.groups.tolist(), strict=True)

    @cached_property
    def _lists(self) -> tuple[Table, ...]:
        return tuple(table.as_lists() for table in self.tables)

    def rows(self, group: int) -> dict[str, list[Characteristic]]:
        """List the rows of each table about a file, by the table's name; zeros are left out."""
        found = {table.name: list(table.rows(group, zeros=False)) for table in self._lists}
        return {name: rows for name, rows in found.items() if rows}


@dataclass(frozen=True)
class Characterisation:
    """The tables of a run; `job` is a `job_record`."""

    log: str
    job: dict[str, Any]
    tables: tuple[Table, ...]
    files: EachFile | None
    not_recorded: tuple[str, ...]
    warnings: tuple[str, ...]


def characterised(
    facts: Facts, *, by_file: bool = False, patterns: Sequence[str] = ()
) -> Characterisation:
    """Make the tables of a run, with `patterns` only of files whose path or name matches one."""
    rows = _matching(facts, patterns) if patterns else np.arange(len(facts.files))
    return Characterisation(
        log=facts.run.name,
        job=job_record(facts),
        tables=_tables(Scope(facts, rows)),
        files=_each_file(facts, rows) if by_file else None,
        not_recorded=not_recorded(facts),
        warnings=(*facts.warnings, *_matching_nothing(rows, patterns)),
    )


def to_record(found: Characterisation) -> dict[str, Any]:
    """Convert a run's tables to a record, rows to lists, without files (see `file_records`)."""
    return {
        "log": found.log,
        "job": found.job,
        "tables": [
            _table_record(table.name, table.rows()) for table in found.tables if table.lines
        ],
        "not_recorded": list(found.not_recorded),
        "warnings": list(found.warnings),
    }


def file_records(found: Characterisation) -> Iterator[dict[str, Any]]:
    """Convert the tables of each file; they have no rows with a 0, so that they stay small."""
    files = found.files
    if files is None:
        return
    for path, group in files.paths_and_groups():
        yield {"path": path, "tables": [_table_record(*each) for each in files.rows(group).items()]}


def _table_record(name: str, rows: Iterable[Characteristic]) -> dict[str, Any]:
    return {"name": name, "columns": list(COLUMNS), "rows": [list(row) for row in rows]}


def _tables(scope: Scope) -> tuple[Table, ...]:
    return tuple(make(scope) for make in TABLES)


def _each_file(facts: Facts, rows: Ints) -> EachFile:
    bytes_ = facts.files.bytes[rows]
    groups = np.argsort(-bytes_, kind="stable")
    paths = tuple(facts.files.path[row] for row in rows[groups].tolist())
    return EachFile(paths, groups, _tables(Scope(facts, rows, by_file=True)))


def _matching_nothing(rows: Ints, patterns: Sequence[str]) -> Iterator[str]:
    if patterns and not len(rows):
        yield f"no file matches {listed([visible(each) for each in patterns])}"


def _matching(facts: Facts, patterns: Sequence[str]) -> Ints:
    """Find the files whose path or name matches a pattern."""
    return np.array(
        [
            row
            for row, path in enumerate(facts.files.path)
            if any(
                fnmatchcase(path, each) or fnmatchcase(path.rpartition("/")[2], each)
                for each in patterns
            )
        ],
        np.int64,
    )
