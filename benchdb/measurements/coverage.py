"""The coverage of the database: how often, how evenly and when each cell was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, select

from benchdb.measurements.cells import bimodal, outliers, spread
from benchdb.measurements.storing import config_of, ids_of_patterns, pattern_of
from benchdb.store.schema import configurations, imports, measurements, systems
from benchdb.store.systems import require_system
from ioncast_base.times import instant
from ioncast_base.wording import counted
from ior_configs import IorConfig

_ROWS_AT_ONCE = 10_000
# A cell with fewer repetitions counts as a cell with few.
ENOUGH = 3
# The default age from which a cell is stale.
STALE_AFTER_DAYS = 365
STALE_AFTER_S = STALE_AFTER_DAYS * 86_400


@dataclass(frozen=True)
class Cell:
    """One configuration on one system with one number of I/O nodes, measured by one engine.

    Attributes
    ----------
    repetitions, set_apart, before_change : int
        Number of measurements in use (0 for a missing cell), of those that are stored but not used,
        and of those from before the newest change of the system.
    spread : float or None
        Coefficient of variation; None for fewer than two repetitions.
    newest : datetime or None
        Time when the newest repetition was measured or, if that is unknown, imported; at most the
        present time.
    stale : bool
        Whether `newest` is too long ago.
    """

    io_nodes: int
    repetitions: int = 0
    set_apart: int = 0
    mean_mib_s: float | None = None
    median_mib_s: float | None = None
    spread: float | None = None
    outliers_mib_s: tuple[float, ...] = ()
    bimodal: bool = False
    newest: datetime | None = None
    stale: bool = False
    before_change: int = 0

    @property
    def missing(self) -> bool:
        """Whether the cell has no measurement in use."""
        return self.repetitions == 0

    @property
    def marks(self) -> str:
        """The marks of the cell: ``*`` for outliers, ``b`` for bimodal, ``s`` for stale."""
        marks = {"*": bool(self.outliers_mib_s), "b": self.bimodal, "s": self.stale}
        return "".join(mark for mark, applies in marks.items() if applies)


@dataclass(frozen=True)
class CoverageRow:
    """The cells of one configuration, by all numbers of I/O nodes measured on the system."""

    system: str
    engine: str
    id: int
    config: IorConfig
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class WantedRow:
    """The wanted cells of a configuration; `id` and `engine` are None without measurements."""

    id: int | None
    engine: str | None
    config: IorConfig
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class CoverageSummary:
    """Numbers of cells of some rows; `few` counts the cells with one or two repetitions."""

    configurations: int
    io_nodes: int
    missing: int
    bimodal: int
    stale: int
    with_outliers: int
    few: int

    def __str__(self) -> str:
        numbers = "1 number" if self.io_nodes == 1 else f"{self.io_nodes} numbers"
        return (
            f"{counted(self.configurations, 'configuration')} × {numbers} of I/O nodes:"
            f" {counted(self.missing, 'cell')} missing, {self.few} with fewer than {ENOUGH}"
            f" repetitions, {self.with_outliers} with outliers, {self.bimodal} bimodal,"
            f" {self.stale} stale"
        )


def coverage(
    connection: Connection,
    system: str | None = None,
    *,
    now: datetime,
    stale_after_s: float,
    ids: Sequence[int] | None = None,
) -> list[CoverageRow]:
    """Read the coverage of configurations, ordered by system, engine and configuration.

    A cell is stale if its newest repetition is older than `stale_after_s`. With `ids` only these
    configurations are read, so that a page costs the same in a database of any size; the numbers of
    I/O nodes are then theirs.
    """
    names = _system_names(connection, system)
    some = _conditions(names, system, ids)
    limit = now.timestamp() - stale_after_s
    # A whole system needs most imports, and selecting them would take longer than reading all.
    needed = _imports(some if ids is not None else ())
    imported = {id_: instant(text) for id_, text in connection.execute(needed)}
    rows_of_cells = _measurements(some)
    if ids is None:
        # Only for everything: `yield_per` makes PostgreSQL use a cursor, for which it would read
        # the whole system to get one page.
        rows_of_cells = rows_of_cells.execution_options(yield_per=_ROWS_AT_ONCE)
    cells = {
        key: {n: _cell(n, rows, imported, now, limit) for n, rows in by_io_nodes.items()}
        for key, by_io_nodes in _rows_by_cell(connection.execute(rows_of_cells))
    }
    configs = {
        row["id"]: config_of(dict(row))
        for row in connection.execute(_configurations(some)).mappings()
    }
    seen: dict[int, set[int]] = {}
    for (system_id, _, _), by_io_nodes in cells.items():
        seen.setdefault(system_id, set()).update(by_io_nodes)
    rows = (
        CoverageRow(
            system=names[system_id],
            engine=engine,
            id=config_id,
            config=configs[config_id],
            cells=tuple(found.get(n) or Cell(n) for n in sorted(seen[system_id])),
        )
        for (system_id, config_id, engine), found in cells.items()
    )
    return sorted(rows, key=lambda row: (row.system, row.engine, row.id))


def coverage_of_configs(
    connection: Connection,
    system: str,
    configs: Sequence[IorConfig],
    *,
    io_nodes: Iterable[int],
    now: datetime,
    stale_after_s: float,
) -> list[WantedRow]:
    """Read the coverage of wanted configurations, measured or not, in their order.

    A configuration has a row for each engine that measured it, or one without an engine.
    """
    patterns = [pattern_of(config) for config in configs]
    known = ids_of_patterns(connection, set(patterns))
    rows = coverage(
        connection, system, now=now, stale_after_s=stale_after_s, ids=sorted(known.values())
    )
    engines: dict[int | None, dict[str | None, tuple[Cell, ...]]] = {}
    for row in rows:
        engines.setdefault(row.id, {})[row.engine] = row.cells
    numbers = sorted(set(io_nodes))
    return [
        WantedRow(id_, engine, config.pattern(), _wanted_cells(numbers, cells))
        for config, id_ in zip(configs, map(known.get, patterns), strict=True)
        for engine, cells in engines.get(id_, {None: ()}).items()
    ]


def blocks(rows: Sequence[CoverageRow]) -> list[tuple[str, str, list[CoverageRow]]]:
    """Group the rows by system and engine; the rows of a group have the same columns."""
    grouped = groupby(rows, key=lambda row: (row.system, row.engine))
    return [(system, engine, list(block)) for (system, engine), block in grouped]


def summarise(rows: Sequence[CoverageRow]) -> CoverageSummary:
    """Count the cells of one group of rows."""
    cells = [cell for row in rows for cell in row.cells]
    return CoverageSummary(
        configurations=len(rows),
        io_nodes=len({cell.io_nodes for cell in cells}),
        missing=sum(cell.missing for cell in cells),
        bimodal=sum(cell.bimodal for cell in cells),
        stale=sum(cell.stale for cell in cells),
        with_outliers=sum(bool(cell.outliers_mib_s) for cell in cells),
        few=sum(0 < cell.repetitions < ENOUGH for cell in cells),
    )


def _system_names(connection: Connection, system: str | None) -> dict[int, str]:
    if system is not None:
        require_system(connection, system)
    query = select(systems.c.id, systems.c.name).order_by(systems.c.name)
    return {row.id: row.name for row in connection.execute(query)}


def _wanted_cells(io_nodes: Iterable[int], cells: Iterable[Cell]) -> tuple[Cell, ...]:
    found = {cell.io_nodes: cell for cell in cells}
    return tuple(found.get(n) or Cell(n) for n in io_nodes)


def _conditions(
    names: dict[int, str], system: str | None, ids: Sequence[int] | None
) -> list[ColumnElement[bool]]:
    """The conditions that select the measurements."""
    conditions = []
    if system is not None:
        [own] = (key for key, name in names.items() if name == system)
        conditions.append(measurements.c.system_id == own)
    if ids is not None:
        conditions.append(measurements.c.configuration_id.in_(ids))
    return conditions


def _imports(some: Sequence[ColumnElement[bool]]) -> Select[Any]:
    query = select(imports.c.id, imports.c.imported_at)
    return _where(query, imports.c.id, select(measurements.c.import_id), some)


def _measurements(some: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Select measurements in the order of their unique index, so that nothing is sorted."""
    columns = measurements.c
    return (
        select(
            columns.system_id,
            columns.configuration_id,
            columns.io_nodes,
            columns.engine,
            columns.used,
            columns.before_change,
            columns.bandwidth_mib_s,
            columns.started,
            columns.import_id,
        )
        .where(*some)
        .order_by(
            columns.system_id,
            columns.configuration_id,
            columns.io_nodes,
            columns.engine,
            columns.repetition,
        )
    )


def _configurations(some: Sequence[ColumnElement[bool]]) -> Select[Any]:
    columns = measurements.c
    return _where(
        select(configurations), configurations.c.id, select(columns.configuration_id), some
    )


def _where(
    query: Select[Any],
    column: Column[Any],
    of_measurements: Select[Any],
    some: Sequence[ColumnElement[bool]],
) -> Select[Any]:
    """Select the rows that these measurements refer to; all rows without conditions."""
    return query.where(column.in_(of_measurements.where(*some))) if some else query


def _rows_by_cell(
    rows: Iterable[Row[Any]],
) -> Iterator[tuple[tuple[int, int, str], dict[int, list[Row[Any]]]]]:
    """Yield, for each system, configuration and engine, the rows by number of I/O nodes."""
    for (system_id, config_id), group in groupby(rows, key=itemgetter(0, 1)):
        engines: dict[str, dict[int, list[Row[Any]]]] = {}
        for row in group:
            engines.setdefault(row.engine, {}).setdefault(row.io_nodes, []).append(row)
        for engine, by_io_nodes in engines.items():
            yield (system_id, config_id, engine), by_io_nodes


def _cell(
    io_nodes: int,
    rows: Sequence[Row[Any]],
    imported: dict[int, datetime | None],
    now: datetime,
    limit: float,
) -> Cell:
    used = [row for row in rows if row.used and not row.before_change]
    before_change = sum(row.used and row.before_change for row in rows)
    if not used:
        return Cell(io_nodes, set_apart=len(rows) - before_change, before_change=before_change)
    values = [row.bandwidth_mib_s for row in used]
    times = (instant(row.started) or imported[row.import_id] for row in used)
    # A wrong clock, or a time without its zone, may give a time in the future.
    newest = max((min(time, now) for time in times if time is not None), default=None)
    return Cell(
        io_nodes=io_nodes,
        repetitions=len(used),
        set_apart=len(rows) - len(used) - before_change,
        mean_mib_s=math.fsum(values) / len(values),
        median_mib_s=statistics.median(values),
        spread=spread(values),
        outliers_mib_s=tuple(
            value for value, flag in zip(values, outliers(values), strict=True) if flag
        ),
        bimodal=bimodal(values),
        newest=newest,
        stale=newest is not None and newest.timestamp() < limit,
        before_change=before_change,
    )
