"""Stores measurements in the database, and identifies configurations by their pattern."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from benchdb.measurements.file_rates import (
    FileRate,
    cells_of_rates,
    cells_of_stored_rates,
    count_rates,
    insert_rates,
)
from benchdb.measurements.progress import Progress, silently
from benchdb.store.accepted_values import check_bandwidth, check_text
from benchdb.store.schema import (
    CONFIGURATION_FIELDS,
    configurations,
    file_rates,
    imports,
    longest,
    measurements,
)
from benchdb.store.system_changes import deciding_time, is_before
from benchdb.store.systems import revise, system_id_of
from ioncast_base.errors import InputError, Remedy
from ioncast_base.limits import LARGEST_BYTES, LARGEST_COUNT
from ior_configs import IorConfig
from ior_configs.conditions import conditions_of_text, conditions_to_text, refusals

_T = TypeVar("_T")
# Number of rows in one insert, and of keys in one query; databases limit the number of parameters.
_CHUNK = 10_000
_KEYS = 500
_READ_BYTES = 1 << 20
_IMPORTED_AT = select(imports.c.imported_at).where(imports.c.id == bindparam("of_import"))

# The longest text that fits into each column.
_LONGEST_API = longest(configurations.c.api)
_LONGEST_CONDITIONS = longest(configurations.c.conditions)
_TEXT_LENGTHS = {
    name: longest(measurements.c[name])
    for name in ("engine", "started", "engine_version", "command", "note", "campaign")
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One repetition of a configuration (a pattern of one operation) with a number of I/O nodes.

    `bandwidth_mib_s` is total bytes over the time of the slowest process, from 1e-9 to 1e15.
    `started` is ISO 8601. A measurement that is not `used` enters no curve, and `note` says why; a
    note may also be a warning of the benchmark. Values out of range are an InputError.
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
    campaign: str | None = None

    def __post_init__(self) -> None:
        check_bandwidth(self.bandwidth_mib_s)
        if not 0 <= self.io_nodes <= LARGEST_COUNT:
            raise InputError(f"{self.io_nodes} I/O nodes, not from 0 to {LARGEST_COUNT}")
        if (self.config.tasks or 0) > LARGEST_COUNT or (self.config.nodes or 0) > LARGEST_COUNT:
            raise InputError(
                f"{self.config.tasks} tasks on {self.config.nodes} nodes, more than {LARGEST_COUNT}"
            )
        if len(self.config.api) > _LONGEST_API or not self.config.api.isprintable():
            raise InputError(f"{self.config.api!r} is not a valid name of an api")
        if self.config.conditions and (reason := unstorable(self.config)):
            raise InputError(reason)
        if not 0 <= (self.bytes or 0) <= LARGEST_BYTES:
            raise InputError(f"{self.bytes} bytes, not from 0 to {LARGEST_BYTES}")
        if not 0 <= (self.time_s or 0) < math.inf:
            raise InputError(f"{self.time_s} is not a valid time in seconds")
        for name, most in _TEXT_LENGTHS.items():
            check_text(name, getattr(self, name), most)


# The fields of a measurement that are columns of the same name.
MEASUREMENT_FIELDS = tuple(field.name for field in fields(Measurement) if field.name != "config")


def store(
    connection: Connection,
    *,
    system: str,
    file: str,
    content: bytes | Path,
    file_format: str,
    rows: Iterable[Measurement | FileRate],
    replace: bool = False,
    progress: Progress = silently,
) -> bool:
    """Store the measurements and the rates of a file.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes (see `benchdb.store.database.transaction`).
    system : str
        Name of the system, which is created if the database does not have it.
    file, content, file_format : str, bytes or Path, str
        Name, content and format of the file; a path stands for a large content. A system stores a
        file with the same content once.
    progress : callable
        A function that returns the rows unchanged and shows how many have passed.

    Returns
    -------
    bool
        False if the system already has these measurements of this file; nothing is changed.

    Raises
    ------
    InputError
        If an earlier import of the file has other configurations, numbers of I/O nodes or numbers
        of repetitions, and `replace` is False; or if the number of processes of a configuration is
        unknown, here and in another import, because it may differ.
    """
    found = list(rows)
    rates = [row for row in found if isinstance(row, FileRate)]
    measured_rows = [row for row in found if isinstance(row, Measurement)]
    system_id = system_id_of(connection, system)
    digest = _sha256(content)
    known = connection.scalar(
        select(imports.c.id).where(imports.c.system_id == system_id, imports.c.sha256 == digest)
    )
    if known is not None:
        stored_rates = cells_of_stored_rates(connection, known)
        if (_cells_of_import(connection, known), stored_rates) == (
            _cells(measured_rows),
            cells_of_rates(rates),
        ):
            return False
        if not replace:
            raise InputError(
                f"{system} already has this file, with other numbers of I/O nodes, tasks, nodes or"
                " repetitions",
                where=file,
                remedy=Remedy("correct it with {}", ("replace",)),
            )
        delete_import(connection, known)
    import_id = insert_import(
        connection,
        system_id=system_id,
        sha256=digest,
        file=file.encode("utf-8", "backslashreplace").decode()[-1000:],
        format=file_format,
        imported_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    insert_rates(connection, system_id, import_id, rates)
    ids = configuration_ids(connection, measured_rows)
    next_repetition = _next_repetitions(connection, system_id, set(ids.values()))
    measured = {configuration for configuration, *_ in next_repetition}
    if any(row.config.tasks is None and ids[id(row.config)] in measured for row in measured_rows):
        raise InputError(
            "the number of processes is unknown, also of earlier runs with these options",
            where=file,
            remedy=Remedy("give the number with {}", ("tasks",)),
        )

    def repetition(row: Measurement) -> int:
        cell = (ids[id(row.config)], row.io_nodes, row.engine)
        number = next_repetition.get(cell, 0)
        next_repetition[cell] = number + 1
        return number

    insert_measurements(
        connection,
        system_id,
        import_id,
        ids,
        ((repetition(row), row) for row in progress(measured_rows)),
    )
    revise(connection, system_id)
    return True


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    with content.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def insert_import(connection: Connection, **values: Any) -> int:
    """Store the origin of measurements, and return its id."""
    query = insert(imports).values(values).returning(imports.c.id)
    return int(connection.scalars(query).one())


def delete_import(connection: Connection, import_id: int) -> None:
    """Delete an import, its measurements and its rates."""
    connection.execute(delete(file_rates).where(file_rates.c.import_id == import_id))
    connection.execute(delete(measurements).where(measurements.c.import_id == import_id))
    connection.execute(delete(imports).where(imports.c.id == import_id))


def configuration_ids(connection: Connection, rows: Iterable[Measurement]) -> dict[int, int]:
    """Map the `id()` of each `IorConfig` object to the id of the configuration in the database.

    New configurations are stored. Importers use one object for all rows of a configuration, and
    the key is the object's `id()`, because comparing a million objects by value takes as long as
    storing them.
    """
    configs = {id(row.config): row.config for row in rows}
    patterns = {key: pattern_of(config) for key, config in configs.items()}
    known = ids_of_patterns(connection, set(patterns.values()))
    new = {patterns[key]: config for key, config in configs.items() if patterns[key] not in known}
    if new:
        values = [_configuration_values(pattern, config) for pattern, config in new.items()]
        connection.execute(insert(configurations), values)
        known |= ids_of_patterns(connection, set(new))
    return {key: known[pattern] for key, pattern in patterns.items()}


def insert_measurements(
    connection: Connection,
    system_id: int,
    import_id: int,
    ids: dict[int, int],
    rows: Iterable[tuple[int, Measurement]],
) -> None:
    """Store measurements with their repetitions; `ids` comes from `configuration_ids`."""
    since = deciding_time(connection, system_id)
    imported_at = connection.scalars(_IMPORTED_AT, {"of_import": import_id}).one()
    values = (
        {
            "system_id": system_id,
            "configuration_id": ids[id(row.config)],
            "import_id": import_id,
            "repetition": repetition,
            "before_change": is_before(since, row.started, imported_at),
            **stored_values(row),
        }
        for repetition, row in rows
    )
    while chunk := list(islice(values, _CHUNK)):
        connection.execute(insert(measurements), chunk)


def stored_values(row: Measurement) -> dict[str, Any]:
    """The values of a measurement's columns; an empty text is stored as NULL."""
    values = {name: getattr(row, name) for name in MEASUREMENT_FIELDS}
    return {name: None if value == "" else value for name, value in values.items()}


def count(connection: Connection) -> int:
    """The number of measurements and rates in the database."""
    found = int(connection.scalars(select(func.count()).select_from(measurements)).one())
    return found + count_rates(connection)


def pattern_of(config: IorConfig) -> str:
    """The canonical text that identifies a configuration."""
    unsaid = " fsync=unknown" if config.fsync is None else ""
    return f"{config.pattern().command_line()} tasks={config.tasks} nodes={config.nodes}{unsaid}"


def ids_of_patterns(connection: Connection, patterns: Iterable[str]) -> dict[str, int]:
    """Map the patterns of stored configurations to their ids; unknown patterns are left out."""
    found: dict[str, int] = {}
    for some in _in_chunks(patterns):
        query = select(configurations.c.pattern, configurations.c.id)
        found |= {
            row[0]: row[1]
            for row in connection.execute(query.where(configurations.c.pattern.in_(some)))
        }
    return found


def config_of(row: dict[str, Any]) -> IorConfig:
    """The configuration in a row that has the columns of `configurations`."""
    values = {name: row[name] for name in CONFIGURATION_FIELDS}
    values["conditions"] = conditions_of_text(row["conditions"])
    operation = row["operation"]
    return IorConfig(**values, write=operation == "write", read=operation == "read")


def unstorable(config: IorConfig) -> str | None:
    """The reason why a run under the conditions of a configuration is in no curve, or None."""
    text = conditions_to_text(config.conditions)
    if len(text) > _LONGEST_CONDITIONS or not text.isprintable():
        return f"the conditions {text[:60]!r} are too long for the database, or cannot be printed"
    return next(iter(refusals(config.conditions)), None)


def joined_note(reason: str, note: str | None) -> str:
    """A note that begins with the reason why a measurement is set apart."""
    return "; ".join(filter(None, (reason, note)))[: _TEXT_LENGTHS["note"]]


def _cells(rows: Iterable[Measurement]) -> Counter[tuple[str, int]]:
    """The number of measurements by pattern and number of I/O nodes."""
    configs = {id(row.config): row.config for row in rows}
    patterns = {key: pattern_of(config) for key, config in configs.items()}
    return Counter((patterns[id(row.config)], row.io_nodes) for row in rows)


def _cells_of_import(connection: Connection, import_id: int) -> Counter[tuple[str, int]]:
    cell = (configurations.c.pattern, measurements.c.io_nodes)
    query = (
        select(*cell, func.count())
        .join_from(measurements, configurations)
        .where(measurements.c.import_id == import_id)
        .group_by(*cell)
    )
    return Counter({(row[0], row[1]): row[2] for row in connection.execute(query)})


def _configuration_values(pattern: str, config: IorConfig) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in CONFIGURATION_FIELDS}
    values["conditions"] = conditions_to_text(config.conditions)
    return values | {"pattern": pattern, "operation": config.operation}


def _next_repetitions(
    connection: Connection, system_id: int, configuration_ids: Iterable[int]
) -> dict[tuple[int, int, str], int]:
    cell = (measurements.c.configuration_id, measurements.c.io_nodes, measurements.c.engine)
    query = (
        select(*cell, func.max(measurements.c.repetition))
        .where(measurements.c.system_id == system_id)
        .group_by(*cell)
    )
    return {
        (row[0], row[1], row[2]): row[3] + 1
        for some in _in_chunks(configuration_ids)
        for row in connection.execute(query.where(measurements.c.configuration_id.in_(some)))
    }


def _in_chunks(keys: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(keys)
    while chunk := list(islice(rest, _KEYS)):
        yield chunk
