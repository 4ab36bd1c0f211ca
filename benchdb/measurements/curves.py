"""Reads measured curves from the database, or only a summary of each curve."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Boolean, Connection, RowMapping, Select, bindparam, func, select

from benchdb.measurements.storing import config_of, pattern_of
from benchdb.store.schema import configurations, measurements, systems
from ior_configs import IorConfig
from ior_configs.conditions import conditions_of_text

# Rounding a size to whole transfers changes the bytes by less; a stone wall changes them by more.
_STONEWALL = 0.05
# Older versions of SQLite allow 999 values in a statement.
_IDS_AT_ONCE = 500


@dataclass(frozen=True)
class Curve:
    """The repetitions of a configuration by number of I/O nodes, measured by one engine.

    The bandwidths are in the order in which they were stored. `stonewalled` says whether runs moved
    another number of bytes than the configuration asks for, `before_change` whether they are from
    before the system's newest change.
    """

    id: int
    config: IorConfig
    engine: str
    bandwidths_mib_s: dict[int, tuple[float, ...]]
    stonewalled: bool = False
    before_change: bool = False


class Measured(NamedTuple):
    """The summary of a curve, without repetitions; other fields are `IorConfig`'s.

    `coverage` is the number of numbers of I/O nodes that it was measured with.
    """

    id: int
    engine: str
    coverage: int
    fewest_bytes: int | None
    most_bytes: int | None
    api: str
    operation: str
    file_per_process: bool
    collective: bool
    random_offsets: int
    transfer_size: int
    block_size: int
    segments: int
    tasks: int | None
    nodes: int | None
    odirect: bool
    fsync: str | None
    conditions: tuple[str, ...]

    @property
    def bytes_per_process(self) -> int:
        """Bytes that the configuration asks each process to move."""
        return self.block_size * self.segments

    @property
    def stonewalled(self) -> bool:
        """Whether runs moved another number of bytes than the configuration asks for."""
        asked = (self.tasks or 0) * self.bytes_per_process
        return _stonewalled(asked, (self.fewest_bytes, self.most_bytes))


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_OF_SYSTEM = (
    systems.c.id == measurements.c.system_id,
    systems.c.name == bindparam("system"),
    measurements.c.used,
    measurements.c.before_change == bindparam("before_change", False, type_=Boolean),
)
_REPETITIONS = (
    select(
        configurations.c.id,
        measurements.c.engine,
        measurements.c.io_nodes,
        measurements.c.bandwidth_mib_s,
        measurements.c.bytes,
    )
    .where(*_OF_SYSTEM, configurations.c.id == measurements.c.configuration_id)
    .order_by(
        measurements.c.configuration_id,
        measurements.c.io_nodes,
        measurements.c.engine,
        measurements.c.repetition,
    )
)
_WITH_PATTERN = _REPETITIONS.where(configurations.c.pattern == bindparam("pattern"))
_WITH_CONFIGURATION = _REPETITIONS.add_columns(
    *(column for column in configurations.c if column.name != "id")
)
_WITH_IDS = _WITH_CONFIGURATION.where(configurations.c.id.in_(bindparam("ids", expanding=True)))
_SUMMARIES = (
    select(
        measurements.c.configuration_id,
        measurements.c.engine,
        func.count(measurements.c.io_nodes.distinct()).label("coverage"),
        func.min(func.nullif(measurements.c.bytes, 0)).label("fewest_bytes"),
        func.max(measurements.c.bytes).label("most_bytes"),
    )
    .where(*_OF_SYSTEM)
    .group_by(measurements.c.configuration_id, measurements.c.engine)
    .subquery()
)
_MEASURED = (
    select(
        *(
            (configurations if name in configurations.c else _SUMMARIES).c[name]
            for name in Measured._fields
        )
    )
    .where(configurations.c.id == _SUMMARIES.c.configuration_id)
    .order_by(configurations.c.id, _SUMMARIES.c.engine)
)


def curves(connection: Connection, system: str, *, before_change: bool = False) -> list[Curve]:
    """All curves of a system, without the rows that are set apart.

    With `before_change` they are those from before the system's newest change, which no longer
    count.
    """
    values = {"system": system, "before_change": before_change}
    return _with_configuration(connection, _WITH_CONFIGURATION, values)


def curves_of_config(connection: Connection, system: str, config: IorConfig) -> list[Curve]:
    """The curves of a configuration on a system, one for each engine that measured it.

    The configuration has one operation. Options that only control the run are ignored.
    """
    values = {"system": system, "pattern": pattern_of(config)}
    return _curves(config.pattern(), connection.execute(_WITH_PATTERN, values).mappings())


def curves_of_ids(
    connection: Connection,
    system: str,
    ids: Iterable[int],
    engine: str | None = None,
    *,
    before_change: bool = False,
) -> list[Curve]:
    """The curves of some configurations; `before_change` as for `curves`."""
    asked = list(ids)
    values = {"system": system, "before_change": before_change}
    found = (
        curve
        for start in range(0, len(asked), _IDS_AT_ONCE)
        for curve in _with_configuration(
            connection, _WITH_IDS, values | {"ids": asked[start : start + _IDS_AT_ONCE]}
        )
    )
    return [curve for curve in found if engine in {None, curve.engine}]


def measured(connection: Connection, system: str, *, before_change: bool = False) -> list[Measured]:
    """The summaries of all curves of a system, without the rows that are set apart.

    `before_change` is as for `curves`.
    """
    rows = connection.execute(_MEASURED, {"system": system, "before_change": before_change})
    return [Measured._make((*known, conditions_of_text(text))) for *known, text in rows]


def _with_configuration(
    connection: Connection, query: Select[Any], values: dict[str, Any]
) -> list[Curve]:
    rows = connection.execute(query, values).mappings()
    groups = (list(group) for _, group in groupby(rows, key=itemgetter("id")))
    found = [curve for group in groups for curve in _curves(config_of(dict(group[0])), group)]
    if not values["before_change"]:
        return found
    return [replace(curve, before_change=True) for curve in found]


def _curves(config: IorConfig, rows: Iterable[RowMapping]) -> list[Curve]:
    """The curves in the rows of a configuration, one for each engine."""
    engines: dict[str, list[RowMapping]] = {}
    for row in rows:
        engines.setdefault(row["engine"], []).append(row)
    return [_curve(config, engine, own) for engine, own in engines.items()]


def _curve(config: IorConfig, engine: str, rows: list[RowMapping]) -> Curve:
    cells: dict[int, list[float]] = {}
    for row in rows:
        cells.setdefault(row["io_nodes"], []).append(row["bandwidth_mib_s"])
    asked = (config.tasks or 0) * config.bytes_per_process
    return Curve(
        id=rows[0]["id"],
        config=config,
        engine=engine,
        bandwidths_mib_s={n: tuple(values) for n, values in cells.items()},
        stonewalled=_stonewalled(asked, (row["bytes"] for row in rows)),
    )


def _stonewalled(asked: int, moved: Iterable[int | None]) -> bool:
    return any(n and asked and abs(n - asked) > _STONEWALL * asked for n in moved)
