"""Lists the content of the database in pages; a page costs the same in a database of any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, RowMapping, bindparam, case, func, select, tuple_

from benchdb.measurements.storing import (
    MEASUREMENT_FIELDS,
    Measurement,
    config_of,
    configuration_ids,
)
from benchdb.store.schema import configurations, imports, measurements, systems
from benchdb.store.systems import require_system, system_names
from ioncast_base.errors import UnknownNameError
from ioncast_base.limits import LARGEST_ID
from ior_configs import IorConfig


@dataclass(frozen=True)
class SystemSummary:
    """A system with its imports in numbers, and the time of the newest one, ISO 8601."""

    name: str
    imports: int
    newest: str | None


@dataclass(frozen=True)
class MeasuredOn:
    """The measurements of a configuration by one engine on one system, in numbers."""

    system: str
    engine: str
    io_nodes: Annotated[
        tuple[int, ...], Field(description="Numbers of I/O nodes with measurements in use.")
    ]
    repetitions: Annotated[int, Field(description="Measurements in use.")]
    set_apart: Annotated[int, Field(description="Measurements that are kept and not used.")]
    before_change: Annotated[
        int,
        Field(
            description="Measurements from before the newest change of the system, which do not"
            " count."
        ),
    ]


@dataclass(frozen=True)
class StoredConfiguration:
    """A stored configuration, and its measurements in numbers, ordered by system and engine."""

    id: int
    config: IorConfig
    measured: tuple[MeasuredOn, ...]


@dataclass(frozen=True)
class StoredMeasurement:
    """A stored measurement; `repetition` counts in its cell from 0.

    `before_change`: it is from before the newest change of the system, and does not count.
    """

    id: int
    configuration_id: int
    repetition: int
    measurement: Measurement
    before_change: bool


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it. The order is the order of the unique index, so that the database sorts nothing.
_PLACE = (
    measurements.c.configuration_id,
    measurements.c.io_nodes,
    measurements.c.engine,
    measurements.c.repetition,
)
_SYSTEM_ID = select(systems.c.id).where(systems.c.name == bindparam("system"))
_IMPORTS = (
    select(systems.c.name, func.count(imports.c.id), func.max(imports.c.imported_at))
    .outerjoin(imports, imports.c.system_id == systems.c.id)
    .where(systems.c.name.in_(bindparam("names", expanding=True)))
    .group_by(systems.c.name)
)
# The recursion looks into the index once for each configuration. DISTINCT would read all
# measurements of these configurations, and in PostgreSQL all measurements of the system.
_MEASURED_FROM = (
    select(func.min(measurements.c.configuration_id).label("id"))
    .where(
        measurements.c.system_id == bindparam("in_system"),
        measurements.c.configuration_id > bindparam("after"),
    )
    .cte("found", recursive=True)
)
_OTHERS = measurements.alias()
_MEASURED = _MEASURED_FROM.union_all(
    select(
        select(func.min(_OTHERS.c.configuration_id))
        .where(
            _OTHERS.c.system_id == bindparam("in_system"),
            _OTHERS.c.configuration_id > _MEASURED_FROM.c.id,
        )
        .scalar_subquery()
    ).where(_MEASURED_FROM.c.id.is_not(None))
)
_MEASURED_IDS = select(_MEASURED.c.id).where(_MEASURED.c.id.is_not(None)).limit(bindparam("most"))
_ALL_IDS = (
    select(configurations.c.id)
    .where(configurations.c.id > bindparam("after"))
    .order_by(configurations.c.id)
    .limit(bindparam("most"))
)
_CONFIGURATIONS = select(configurations).where(
    configurations.c.id.in_(bindparam("ids", expanding=True))
)
_USED = measurements.c.used
_CELLS = (
    select(
        *(measurements.c[name] for name in ("system_id", "configuration_id")),
        *(measurements.c[name] for name in ("engine", "io_nodes")),
        func.sum(case((_USED & ~measurements.c.before_change, 1), else_=0)).label("used"),
        func.sum(case((_USED & measurements.c.before_change, 1), else_=0)).label("before_change"),
        func.count().label("stored"),
    )
    .where(
        measurements.c.system_id.in_(bindparam("systems", expanding=True)),
        measurements.c.configuration_id.in_(bindparam("ids", expanding=True)),
    )
    .group_by(
        *(measurements.c[name] for name in ("system_id", "configuration_id")),
        *(measurements.c[name] for name in ("engine", "io_nodes")),
    )
)
_MEASUREMENTS = (
    select(measurements)
    .where(measurements.c.system_id == bindparam("in_system"))
    .order_by(*_PLACE)
    .limit(bindparam("most"))
)
_PLACE_OF = select(*_PLACE).where(
    measurements.c.system_id == bindparam("in_system"), measurements.c.id == bindparam("after")
)


def systems_after(connection: Connection, after: str = "", limit: int = 100) -> list[SystemSummary]:
    """List systems by name."""
    names = [name for name in system_names(connection) if name > after][:limit]
    rows = connection.execute(_IMPORTS, {"names": names})
    found = {name: SystemSummary(name, count, newest) for name, count, newest in rows}
    return [found[name] for name in names]


def system(connection: Connection, name: str) -> SystemSummary:
    """Read one system; an UnknownNameError if the database does not have it."""
    rows = connection.execute(_IMPORTS, {"names": [require_system(connection, name)]})
    return SystemSummary(*rows.one())


def measured_ids(
    connection: Connection, system: str, after: int = 0, limit: int = 100
) -> list[int]:
    """The ids of configurations above `after` that were measured on a system, ascending."""
    key = {"in_system": _id_of(connection, system), "after": _id(after), "most": limit}
    return list(connection.scalars(_MEASURED_IDS, key))


def configurations_after(
    connection: Connection, *, system: str | None = None, after: int = 0, limit: int = 100
) -> list[StoredConfiguration]:
    """List configurations with ids above `after` in their order, all or those of a system."""
    if system is None:
        ids = list(connection.scalars(_ALL_IDS, {"after": _id(after), "most": limit}))
    else:
        ids = measured_ids(connection, system, after, limit)
    return _described(connection, ids, system)


def configuration_of(connection: Connection, config: IorConfig) -> tuple[StoredConfiguration, bool]:
    """Store a configuration if the database does not have it; return it, and whether it is new."""
    row = Measurement(config.pattern(), 0, 1.0)
    before = connection.scalar(select(func.max(configurations.c.id))) or 0
    [key] = configuration_ids(connection, [row]).values()
    [found] = _described(connection, [key], None)
    return found, key > before


def measurements_after(
    connection: Connection,
    system: str,
    *,
    configuration_id: int | None = None,
    after: int | None = None,
    limit: int = 100,
) -> list[StoredMeasurement]:
    """List the measurements of a system by configuration, I/O nodes, engine and repetition.

    `after` is the id of the last one of the page before; if it is gone, an UnknownNameError is
    raised.
    """
    key: dict[str, Any] = {"in_system": _id_of(connection, system), "most": limit}
    query = _MEASUREMENTS
    if configuration_id is not None:
        query = query.where(measurements.c.configuration_id == _id(configuration_id))
    if after is not None:
        place = connection.execute(_PLACE_OF, {**key, "after": _id(after)}).one_or_none()
        if place is None:
            raise UnknownNameError(
                f"{system!r} does not have measurement {after} any more",
                remedy="start again with the first page",
            )
        query = query.where(tuple_(*_PLACE) > tuple_(*place))
    rows = list(connection.execute(query, key).mappings())
    configs = _configs(connection, {row["configuration_id"] for row in rows})
    return [_measurement(row, configs) for row in rows]


def _id_of(connection: Connection, system: str) -> int:
    return int(connection.scalars(_SYSTEM_ID, {"system": require_system(connection, system)}).one())


def _id(number: int) -> int:
    """Limit an id to the largest id of a column, so that a query accepts it."""
    return min(number, LARGEST_ID)


def _described(
    connection: Connection, ids: Sequence[int], system: str | None
) -> list[StoredConfiguration]:
    query = select(systems.c.id, systems.c.name)
    names = {row.id: row.name for row in connection.execute(query) if system in {None, row.name}}
    cells = connection.execute(_CELLS, {"systems": list(names), "ids": ids}).mappings()
    measured: dict[int, dict[tuple[str, str], list[RowMapping]]] = {key: {} for key in ids}
    for cell in cells:
        by = (names[cell["system_id"]], cell["engine"])
        measured[cell["configuration_id"]].setdefault(by, []).append(cell)
    configs = _configs(connection, ids)
    return [
        StoredConfiguration(
            key,
            configs[key],
            tuple(_measured_on(*by, cells) for by, cells in sorted(measured[key].items())),
        )
        for key in ids
    ]


def _measured_on(system: str, engine: str, cells: Sequence[RowMapping]) -> MeasuredOn:
    used, before_change, stored = (
        int(sum(cell[name] for cell in cells)) for name in ("used", "before_change", "stored")
    )
    return MeasuredOn(
        system=system,
        engine=engine,
        io_nodes=tuple(sorted(cell["io_nodes"] for cell in cells if cell["used"])),
        repetitions=used,
        set_apart=stored - used - before_change,
        before_change=before_change,
    )


def _configs(connection: Connection, ids: Iterable[int]) -> dict[int, IorConfig]:
    rows = connection.execute(_CONFIGURATIONS, {"ids": list(ids)}).mappings()
    return {row["id"]: config_of(dict(row)) for row in rows}


def _measurement(row: RowMapping, configs: dict[int, IorConfig]) -> StoredMeasurement:
    return StoredMeasurement(
        id=row["id"],
        configuration_id=row["configuration_id"],
        repetition=row["repetition"],
        measurement=Measurement(
            configs[row["configuration_id"]], **{name: row[name] for name in MEASUREMENT_FIELDS}
        ),
        before_change=row["before_change"],
    )
