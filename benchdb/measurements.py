"""Measurements and curves: into the database and out of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Column, Connection, RowMapping, Table, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from benchdb.schema import configurations, imports, measurements, systems
from ioncast_errors import InputError
from ior_configs import IorConfig

_LARGEST = 2**63 - 1
# Sizes are rounded to whole transfers; a stone wall costs more.
_STONEWALL = 0.05

_CONFIG_FIELDS = (
    "api",
    "file_per_process",
    "collective",
    "random_offsets",
    "transfer_size",
    "block_size",
    "segments",
    "tasks",
    "nodes",
    "odirect",
    "fsync",
    "reorder_tasks",
    "intra_test_barriers",
)
# Columns of a measurement that are fields of `Measurement` by the same name.
_ROW_FIELDS = (
    "bandwidth_mib_s",
    "bytes",
    "time_s",
    "started",
    "engine",
    "engine_version",
    "command",
    "used",
    "note",
)


@dataclass(frozen=True)
class Measurement:
    """One repetition of a configuration with a number of I/O nodes.

    Attributes
    ----------
    config : IorConfig
        A pattern (see `IorConfig.pattern`) of one operation.
    io_nodes : int
        I/O nodes it ran with; 0 is direct access.
    bandwidth_mib_s : float
        Total bytes over the time of the slowest process; positive and finite.
    bytes : int or None
        Bytes moved.
    time_s : float or None
        The slowest process's time.
    started : str or None
        When, ISO 8601.
    engine, engine_version : str, str or None
        The program that measured.
    command : str or None
        Its command line as it was given.
    used : bool
        False where the file sets the row apart from the others.
    note : str or None
        Why it is set apart, or a warning of the benchmark's.

    Raises
    ------
    InputError
        For quantities that cannot be.
    """

    config: IorConfig
    io_nodes: int
    bandwidth_mib_s: float
    bytes: int | None = None
    time_s: float | None = None
    started: str | None = None
    engine: str = "ior"
    engine_version: str | None = None
    command: str | None = None
    used: bool = True
    note: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.bandwidth_mib_s < math.inf:
            raise InputError(f"a bandwidth of {self.bandwidth_mib_s} MiB/s, not above 0")
        if not 0 <= self.io_nodes <= _LARGEST:
            raise InputError(f"{self.io_nodes} I/O nodes")
        if not 0 <= (self.bytes or 0) <= _LARGEST:
            raise InputError(f"{self.bytes} bytes")
        if not 0 <= (self.time_s or 0) < math.inf:
            raise InputError(f"a time of {self.time_s} s")


@dataclass(frozen=True)
class Curve:
    """A configuration's repetitions by number of I/O nodes, of one engine.

    Attributes
    ----------
    id : int
        The configuration's id in the database.
    config : IorConfig
        The configuration.
    engine : str
        The program that measured it.
    bandwidths_mib_s : dict of int to tuple of float
        I/O nodes to repetitions, in the order they were stored.
    stonewalled : bool
        Runs moved other bytes than the configuration asks for.
    """

    id: int
    config: IorConfig
    engine: str
    bandwidths_mib_s: dict[int, tuple[float, ...]]
    stonewalled: bool = False


def store(
    connection: Connection,
    *,
    system: str,
    file: str,
    content: bytes,
    file_format: str,
    rows: Iterable[Measurement],
    replace: bool = False,
) -> bool:
    """Store a file's measurements.

    Parameters
    ----------
    connection : Connection
        In a transaction (see `benchdb.store.transaction`).
    system : str
        The system's name; it is created on first use.
    file, content, file_format : str, bytes, str
        Where the rows are from; the content's hash keeps a file from counting twice.
    rows : iterable of Measurement
        What the file says.
    replace : bool
        Put them in the place of those of an earlier import of the file.

    Returns
    -------
    bool
        False if the system has these measurements of this file already; nothing is changed.

    Raises
    ------
    InputError
        When an earlier import of the file said otherwise what was run, and `replace` is off.
    """
    rows = list(rows)
    system_id = _id_of(connection, systems, systems.c.name, system, {"name": system})
    digest = hashlib.sha256(content).hexdigest()
    known = connection.scalar(
        select(imports.c.id).where(imports.c.system_id == system_id, imports.c.sha256 == digest)
    )
    if known is not None:
        if _cells_of_import(connection, known) == {
            (pattern_of(r.config), r.io_nodes) for r in rows
        }:
            return False
        if not replace:
            raise InputError(
                f"{system} has this file already, with other I/O nodes, tasks or nodes",
                where=file,
                remedy="correct it with --replace",
            )
        connection.execute(delete(measurements).where(measurements.c.import_id == known))
        connection.execute(delete(imports).where(imports.c.id == known))
    import_id = connection.scalars(
        insert(imports)
        .values(
            system_id=system_id,
            sha256=digest,
            file=file.encode("utf-8", "backslashreplace").decode()[-1000:],
            format=file_format,
            imported_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )
        .returning(imports.c.id)
    ).one()
    _insert(connection, system_id, import_id, rows)
    return True


def _insert(
    connection: Connection, system_id: int, import_id: int, rows: list[Measurement]
) -> None:
    next_repetition = _next_repetitions(connection, system_id)
    ids: dict[str, int] = {}
    values = []
    for row in rows:
        pattern = pattern_of(row.config)
        if pattern not in ids:
            ids[pattern] = _configuration_id(connection, pattern, row.config)
        cell = (ids[pattern], row.io_nodes)
        repetition = next_repetition.get(cell, 0)
        next_repetition[cell] = repetition + 1
        values.append(
            {
                "system_id": system_id,
                "configuration_id": ids[pattern],
                "import_id": import_id,
                "io_nodes": row.io_nodes,
                "repetition": repetition,
                **{name: getattr(row, name) for name in _ROW_FIELDS},
            }
        )
    if values:
        connection.execute(insert(measurements), values)


def system_names(connection: Connection) -> list[str]:
    """All systems, by name."""
    return list(connection.scalars(select(systems.c.name).order_by(systems.c.name)))


def curves(connection: Connection, system: str) -> list[Curve]:
    """Every configuration measured on a system, without the rows that are set apart."""
    query = (
        select(configurations, measurements.c.io_nodes, measurements.c.bandwidth_mib_s)
        .add_columns(measurements.c.engine, measurements.c.bytes)
        .join_from(measurements, configurations)
        .join(systems, systems.c.id == measurements.c.system_id)
        .where(systems.c.name == system, measurements.c.used)
        .order_by(configurations.c.id, measurements.c.io_nodes, measurements.c.repetition)
    )
    found: dict[tuple[int, str], list[RowMapping]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault((row["id"], row["engine"]), []).append(row)
    return [_curve(id_, engine, rows) for (id_, engine), rows in found.items()]


def _curve(id_: int, engine: str, rows: list[RowMapping]) -> Curve:
    config = config_of(dict(rows[0]))
    cells: dict[int, list[float]] = {}
    for row in rows:
        cells.setdefault(row["io_nodes"], []).append(row["bandwidth_mib_s"])
    asked = (config.tasks or 0) * config.bytes_per_process
    return Curve(
        id=id_,
        config=config,
        engine=engine,
        bandwidths_mib_s={n: tuple(values) for n, values in cells.items()},
        stonewalled=any(
            row["bytes"] and asked and abs(row["bytes"] - asked) > _STONEWALL * asked
            for row in rows
        ),
    )


def export_rows(connection: Connection, system: str | None = None) -> list[dict[str, Any]]:
    """Every measurement with its configuration, for CSV."""
    query = (
        select(systems.c.name.label("system"), configurations, measurements)
        .join_from(measurements, configurations)
        .join(systems, systems.c.id == measurements.c.system_id)
        .order_by(
            systems.c.name,
            configurations.c.id,
            measurements.c.io_nodes,
            measurements.c.repetition,
        )
    )
    if system is not None:
        query = query.where(systems.c.name == system)
    rows = []
    for row in connection.execute(query).mappings():
        config = config_of(dict(row))
        rows.append(
            {
                **row,
                "layout": config.layout,
                "spatiality": config.spatiality,
                "file_access": config.file_access,
            }
        )
    return rows


def pattern_of(config: IorConfig) -> str:
    """The canonical text that identifies a configuration."""
    return f"{config.pattern().command_line()} tasks={config.tasks} nodes={config.nodes}"


def config_of(row: dict[str, Any]) -> IorConfig:
    """The configuration in a row with the `configurations` columns."""
    values = {name: row[name] for name in _CONFIG_FIELDS}
    operation = row["operation"]
    return IorConfig(**values, write=operation == "write", read=operation == "read")


def _cells_of_import(connection: Connection, import_id: int) -> set[tuple[str, int]]:
    """The configurations and numbers of I/O nodes of one import's measurements."""
    query = (
        select(configurations.c.pattern, measurements.c.io_nodes)
        .join_from(measurements, configurations)
        .where(measurements.c.import_id == import_id)
        .distinct()
    )
    return {(row[0], row[1]) for row in connection.execute(query)}


def _configuration_id(connection: Connection, pattern: str, config: IorConfig) -> int:
    values = {name: getattr(config, name) for name in _CONFIG_FIELDS}
    values |= {"pattern": pattern, "operation": config.operation}
    return _id_of(connection, configurations, configurations.c.pattern, pattern, values)


def _id_of(
    connection: Connection, table: Table, column: Column[str], key: str, values: dict[str, Any]
) -> int:
    """The id of the row with this key, inserted if it is not there yet."""
    query = select(table.c.id).where(column == key)
    row = connection.execute(query).first()
    if row is None:
        try:
            with connection.begin_nested():
                connection.execute(insert(table).values(values))
        except IntegrityError:
            # Another writer was faster; its row serves as well.
            pass
        row = connection.execute(query).one()
    return int(row[0])


def _next_repetitions(connection: Connection, system_id: int) -> dict[tuple[int, int], int]:
    cell = (measurements.c.configuration_id, measurements.c.io_nodes)
    query = (
        select(*cell, func.max(measurements.c.repetition))
        .where(measurements.c.system_id == system_id)
        .group_by(*cell)
    )
    return {(row[0], row[1]): row[2] + 1 for row in connection.execute(query)}
