"""Measurements into the database."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, update

from benchdb.measurements.progress import Progress, silently
from benchdb.store.accepted_values import check_bandwidth, check_text
from benchdb.store.schema import (
    CONFIGURATION_FIELDS,
    configurations,
    imports,
    longest,
    measurements,
    systems,
)
from ioncast_base.errors import InputError, Remedy, UnknownNameError
from ioncast_base.limits import LARGEST_BYTES, LARGEST_COUNT
from ior_configs import IorConfig

_T = TypeVar("_T")
# How many rows or keys go to the database at once.
_CHUNK = 10_000
_KEYS = 500

_REVISE = (
    update(systems)
    .where(systems.c.id == bindparam("of_system"))
    .values(revision=bindparam("new_revision"))
)

# The longest text that each column takes.
_LONGEST_API = longest(configurations.c.api)
_TEXT_LENGTHS = {
    name: longest(measurements.c[name])
    for name in ("engine", "started", "engine_version", "command", "note", "campaign")
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One repetition of a configuration with a number of I/O nodes.

    Attributes
    ----------
    config : IorConfig
        A pattern (see `IorConfig.pattern`) of one operation.
    io_nodes : int
        I/O nodes it ran with; 0 is direct access.
    bandwidth_mib_s : float
        Total bytes over the time of the slowest process; from 1e-9 to 1e15.
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
    campaign : str or None
        The campaign whose run it was.

    Raises
    ------
    InputError
        For quantities that cannot be, and texts that the database does not take.
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
            raise InputError(f"{self.io_nodes} I/O nodes")
        if (self.config.tasks or 0) > LARGEST_COUNT or (self.config.nodes or 0) > LARGEST_COUNT:
            raise InputError(f"{self.config.tasks} tasks on {self.config.nodes} nodes")
        if len(self.config.api) > _LONGEST_API or not self.config.api.isprintable():
            raise InputError(f"an API named {self.config.api!r}")
        if not 0 <= (self.bytes or 0) <= LARGEST_BYTES:
            raise InputError(f"{self.bytes} bytes")
        if not 0 <= (self.time_s or 0) < math.inf:
            raise InputError(f"a time of {self.time_s} s")
        for name, most in _TEXT_LENGTHS.items():
            check_text(name, getattr(self, name), most)


# The fields of a measurement that are columns by the same name.
MEASUREMENT_FIELDS = tuple(field.name for field in fields(Measurement) if field.name != "config")


def store(
    connection: Connection,
    *,
    system: str,
    file: str,
    content: bytes,
    file_format: str,
    rows: Iterable[Measurement],
    replace: bool = False,
    progress: Progress = silently,
) -> bool:
    """Store a file's measurements.

    Parameters
    ----------
    connection : Connection
        In a transaction (see `benchdb.store.database.transaction`).
    system : str
        The system's name; it is created on first use.
    file, content, file_format : str, bytes, str
        Where the rows are from; the content's hash keeps a file from counting twice.
    rows : iterable of Measurement
        What the file says.
    replace : bool
        Put them in the place of all of an earlier import of the file.
    progress : callable
        What the rows pass through while they are stored.

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
    system_id = system_id_of(connection, system)
    digest = hashlib.sha256(content).hexdigest()
    known = connection.scalar(
        select(imports.c.id).where(imports.c.system_id == system_id, imports.c.sha256 == digest)
    )
    if known is not None:
        if _cells_of_import(connection, known) == _cells(rows):
            return False
        if not replace:
            raise InputError(
                f"{system} has this file already, with other I/O nodes, tasks, nodes or"
                " numbers of repetitions",
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
    ids = configuration_ids(connection, rows)
    next_repetition = _next_repetitions(connection, system_id, set(ids.values()))

    def repetition(row: Measurement) -> int:
        cell = (ids[id(row.config)], row.io_nodes, row.engine)
        number = next_repetition.get(cell, 0)
        next_repetition[cell] = number + 1
        return number

    insert_measurements(
        connection, system_id, import_id, ids, ((repetition(row), row) for row in progress(rows))
    )
    revise(connection, system_id)
    return True


def system_id_of(connection: Connection, name: str) -> int:
    """The id of a system, created if it is not there yet.

    Raises
    ------
    InputError
        For a name that differs from another system's only in case or blanks, or is none.
    """
    check_new_system(connection, name)
    known = connection.scalar(select(systems.c.id).where(systems.c.name == name))
    if known is not None:
        return int(known)
    return _inserted(connection, systems, name=name)


def check_new_system(connection: Connection, name: str) -> None:
    """Refuse a name that a database cannot take beside those it has; the same one it can.

    Raises
    ------
    InputError
        For a name that differs from another system's only in case or blanks, or is none.
    """
    check_system_name(name)
    names = system_names(connection)
    alike = next((other for other in names if _spelling(other) == _spelling(name)), None)
    if alike is not None and name not in names:
        raise InputError(
            f"the database has {alike!r} already",
            where=f"system {name!r}",
            remedy="spell it like that, or choose a name that differs in more than case and blanks",
        )


def check_system_name(name: str) -> None:
    """Refuse what no database takes as the name of a system.

    Raises
    ------
    InputError
        When the name cannot be printed and typed, or is too long.
    """
    if not name or name != " ".join(name.split()) or not name.isprintable():
        raise InputError(f"{name!r} is no name of a system", remedy="use words and single blanks")
    if len(name) > longest(systems.c.name):
        raise InputError(f"the name of the system has {len(name)} characters, more than 200")


def _spelling(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).split()).casefold()


def insert_import(connection: Connection, **values: Any) -> int:
    """Store where measurements are from, and give its id."""
    return _inserted(connection, imports, **values)


def delete_import(connection: Connection, import_id: int) -> None:
    """Forget an import and its measurements."""
    connection.execute(delete(measurements).where(measurements.c.import_id == import_id))
    connection.execute(delete(imports).where(imports.c.id == import_id))


def revise(connection: Connection, system_id: int) -> None:
    """Tell from now on that a system's measurements are others than before."""
    connection.execute(_REVISE, {"of_system": system_id, "new_revision": uuid4().hex})


def configuration_ids(connection: Connection, rows: Iterable[Measurement]) -> dict[int, int]:
    """The database's ids of the rows' configurations, by Python's id of each `IorConfig`.

    Importers share one object among the rows of a configuration; to compare a million
    objects by value takes as long as to store them.
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
    """Store measurements with their repetitions; `ids` is from `configuration_ids`."""
    values = (
        {
            "system_id": system_id,
            "configuration_id": ids[id(row.config)],
            "import_id": import_id,
            "repetition": repetition,
            **stored_values(row),
        }
        for repetition, row in rows
    )
    while chunk := list(islice(values, _CHUNK)):
        connection.execute(insert(measurements), chunk)


def stored_values(row: Measurement) -> dict[str, Any]:
    """What the columns of a measurement hold; an empty text is the same as none."""
    values = {name: getattr(row, name) for name in MEASUREMENT_FIELDS}
    return {name: None if value == "" else value for name, value in values.items()}


def count(connection: Connection) -> int:
    """How many measurements the database has."""
    return int(connection.scalars(select(func.count()).select_from(measurements)).one())


def system_names(connection: Connection) -> list[str]:
    """All systems, in the order of their names' bytes."""
    return sorted(connection.scalars(select(systems.c.name)))


def measured_systems(connection: Connection) -> list[str]:
    """Those that something was measured on, in the order of their names' bytes."""
    measured = select(imports.c.id).where(imports.c.system_id == systems.c.id).exists()
    return sorted(connection.scalars(select(systems.c.name).where(measured)))


def require_system(connection: Connection, name: str) -> str:
    """The name of a system that the database has.

    Raises
    ------
    UnknownNameError
        When it has none of that name.
    """
    names = system_names(connection)
    if name not in names:
        raise UnknownNameError(
            f"no system {name!r} in the database",
            remedy=f"known are {', '.join(names)}" if names else "import measurements first",
        )
    return name


def pattern_of(config: IorConfig) -> str:
    """The canonical text that identifies a configuration."""
    return f"{config.pattern().command_line()} tasks={config.tasks} nodes={config.nodes}"


def ids_of_patterns(connection: Connection, patterns: Iterable[str]) -> dict[str, int]:
    """The ids of those configurations that the database has, by what `pattern_of` them is."""
    found: dict[str, int] = {}
    for some in _in_chunks(patterns):
        query = select(configurations.c.pattern, configurations.c.id)
        found |= {
            row[0]: row[1]
            for row in connection.execute(query.where(configurations.c.pattern.in_(some)))
        }
    return found


def config_of(row: dict[str, Any]) -> IorConfig:
    """The configuration in a row with the `configurations` columns."""
    values = {name: row[name] for name in CONFIGURATION_FIELDS}
    operation = row["operation"]
    return IorConfig(**values, write=operation == "write", read=operation == "read")


def _cells(rows: Iterable[Measurement]) -> Counter[tuple[str, int]]:
    """How many measurements there are of each configuration and number of I/O nodes."""
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


def _inserted(connection: Connection, table: Table, **values: Any) -> int:
    query = insert(table).values(values).returning(table.c.id)
    return int(connection.scalars(query).one())
