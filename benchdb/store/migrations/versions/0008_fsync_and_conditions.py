"""Stores when a configuration calls fsync and its conditions, by the commands of its runs."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from alembic import op

from benchdb.measurements.storing import joined_note, pattern_of, unstorable
from benchdb.store.older_rows import Said, completed, said_by
from ior_configs import IorConfig
from ior_configs.conditions import conditions_to_text

revision = "0008"
down_revision = "0007"

_FLAGS = ("file_per_process", "collective", "odirect", "reorder_tasks", "intra_test_barriers")
_FIELDS = (
    *("api", "random_offsets", "transfer_size", "block_size", "segments", "tasks", "nodes"),
    *_FLAGS,
)
_CONFIGURATIONS = sa.table(
    "configurations",
    *(sa.column(name, sa.Boolean if name in _FLAGS else None) for name in _FIELDS),
    *(sa.column(name) for name in ("id", "operation", "new_fsync", "conditions")),
    sa.column("pattern", sa.String),
    sa.column("fsync", sa.Boolean),
)
_CELL = ("system_id", "io_nodes", "engine")
_MEASUREMENTS = sa.table(
    "measurements",
    *map(sa.column, ("id", "configuration_id", *_CELL, "repetition", "command", "note")),
    sa.column("used", sa.Boolean),
)
_SYSTEMS = sa.table("systems", sa.column("id"), sa.column("revision"))
_ROWS_AT_ONCE = 10_000

# The id of a configuration, with the meaning of a run's command.
_Key = tuple[int, Said | None]
_Rows = Mapping[int, Mapping[str, Any]]


def upgrade() -> None:
    """Divide each configuration by the commands of its runs."""
    op.add_column("configurations", sa.Column("new_fsync", sa.String(10)))
    op.add_column(
        "configurations",
        sa.Column("conditions", sa.String(250), nullable=False, server_default=""),
    )
    connection = op.get_bind()
    stored = _stored(connection)
    commands = _Commands(connection, stored)
    ran = {
        (id_, said): completed(_config(stored[id_]), stored[id_]["fsync"], said)
        for id_, said in commands.runs
    }
    reasons = {key: reason for key, config in ran.items() if (reason := unstorable(config))}
    wanted = {
        key: replace(config, conditions=()) if key in reasons else config
        for key, config in ran.items()
    }
    _divide(connection, commands, wanted, _new_values)
    _set_apart(connection, commands, reasons)
    op.drop_column("configurations", "fsync")
    op.execute("ALTER TABLE configurations RENAME COLUMN new_fsync TO fsync")


def downgrade() -> None:
    """Merge configurations that differ only in conditions, or in an fsync other than at the end."""
    op.execute("ALTER TABLE configurations RENAME COLUMN fsync TO new_fsync")
    op.add_column(
        "configurations", sa.Column("fsync", sa.Boolean, nullable=False, server_default=sa.false())
    )
    connection = op.get_bind()
    stored = _stored(connection)
    at_end = {id_ for id_, row in stored.items() if row["new_fsync"] == "end"}
    commands = _Commands(connection, stored)
    wanted = {
        key: replace(_config(stored[key[0]]), fsync="end" if key[0] in at_end else "none")
        for key in commands.runs
    }
    _divide(connection, commands, wanted, _old_values)
    op.drop_column("configurations", "conditions")
    op.drop_column("configurations", "new_fsync")


class _Commands:
    """The meaning of the commands of all measurements; each distinct command is read once.

    Attributes
    ----------
    runs : Counter of (int, Said or None)
        The number of measurements by configuration and meaning. A configuration without
        measurements has a meaning of None, zero times.
    """

    def __init__(self, connection: sa.Connection, stored: _Rows) -> None:
        places: dict[_Key, int] = {}
        self._places = array("L")
        for id_, command in _by_id(connection, "configuration_id", "command"):
            self._places.append(places.setdefault((id_, said_by(command)), len(places)))
        self._keys = list(places)
        self.runs: Counter[_Key] = Counter(self)
        for id_ in stored.keys() - {id_ for id_, _ in places}:
            self.runs[id_, None] = 0

    def __iter__(self) -> Iterator[_Key]:
        """Yield the key of each measurement, in the order of their ids."""
        return map(self._keys.__getitem__, self._places)


def _stored(connection: sa.Connection) -> _Rows:
    rows = connection.execute(sa.select(_CONFIGURATIONS)).mappings()
    return {row["id"]: dict(row) for row in rows}


def _by_id(connection: sa.Connection, *names: str) -> Iterable[Any]:
    """Read columns of all measurements in the order of their ids."""
    query = sa.select(*(_MEASUREMENTS.c[name] for name in names)).order_by(_MEASUREMENTS.c.id)
    return connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE))


def _config(row: Mapping[str, Any]) -> IorConfig:
    values = {name: row[name] for name in _FIELDS}
    operation = row["operation"]
    return IorConfig(**values, write=operation == "write", read=operation == "read")


def _divide(
    connection: sa.Connection,
    commands: _Commands,
    wanted: Mapping[_Key, IorConfig],
    values_of: Callable[[IorConfig], dict[str, Any]],
) -> None:
    """Give each measurement the wanted configuration; delete those that no measurement wants."""
    patterns = {key: pattern_of(config) for key, config in wanted.items()}
    owners = _owners(commands, patterns)
    # No pattern may come twice, not even until the next statement.
    number = sa.cast(_CONFIGURATIONS.c.id, sa.String)
    connection.execute(_CONFIGURATIONS.update().values(pattern=sa.literal("#") + number))
    for pattern, config in {patterns[key]: wanted[key] for key in wanted}.items():
        _write(connection, owners.get(pattern), {"pattern": pattern, **values_of(config)}, config)
    found = connection.execute(sa.select(_CONFIGURATIONS.c.pattern, _CONFIGURATIONS.c.id))
    ids = {row.pattern: row.id for row in found}
    _move(connection, commands, {key: ids[pattern] for key, pattern in patterns.items()})
    connection.execute(_CONFIGURATIONS.delete().where(_CONFIGURATIONS.c.pattern.like("#%")))
    for id_ in list(connection.scalars(sa.select(_SYSTEMS.c.id))):
        system = _SYSTEMS.update().where(_SYSTEMS.c.id == id_)
        connection.execute(system.values(revision=uuid4().hex))


def _owners(commands: _Commands, patterns: Mapping[_Key, str]) -> dict[str, int]:
    """Find the row that stays for each pattern: the one with most of its runs."""
    owners: dict[str, int] = {}
    placed: set[int] = set()
    for key in sorted(commands.runs, key=lambda key: (-commands.runs[key], key[0], patterns[key])):
        if key[0] not in placed and patterns[key] not in owners:
            owners[patterns[key]] = key[0]
            placed.add(key[0])
    return owners


def _write(
    connection: sa.Connection, id_: int | None, values: dict[str, Any], config: IorConfig
) -> None:
    """Change the row of a configuration, or add one if it has none."""
    if id_ is None:
        own = {name: getattr(config, name) for name in (*_FIELDS, "operation")}
        connection.execute(_CONFIGURATIONS.insert().values(own | values))
    else:
        row = _CONFIGURATIONS.update().where(_CONFIGURATIONS.c.id == id_)
        connection.execute(row.values(values))


def _new_values(config: IorConfig) -> dict[str, Any]:
    text = conditions_to_text(config.conditions)
    # The old column, which is dropped afterwards, must not be null.
    return {"new_fsync": config.fsync, "conditions": text, "fsync": False}


def _old_values(config: IorConfig) -> dict[str, Any]:
    return {"fsync": config.fsync == "end"}


def _move(connection: sa.Connection, commands: _Commands, targets: Mapping[_Key, int]) -> None:
    """Move measurements; their repetitions keep their numbers unless others have these already."""
    receivers = {target for key, target in targets.items() if target != key[0]}
    taken: defaultdict[tuple[Any, ...], set[int]] = defaultdict(set)
    moving = []
    rows = _by_id(connection, "id", "configuration_id", *_CELL, "repetition")
    for key, (id_, present, *cell, repetition) in zip(commands, rows, strict=True):
        if present in receivers:
            taken[(present, *cell)].add(repetition)
        if targets[key] != present:
            moving.append((id_, repetition, (targets[key], *cell)))
    changes = []
    for id_, repetition, place in moving:
        free = repetition if repetition not in taken[place] else max(taken[place]) + 1
        taken[place].add(free)
        changes.append({"row": id_, "target": place[0], "number": free})
    _update(
        connection,
        changes,
        configuration_id=sa.bindparam("target"),
        repetition=sa.bindparam("number"),
    )


def _set_apart(connection: sa.Connection, commands: _Commands, reasons: Mapping[_Key, str]) -> None:
    """Mark the measurements whose conditions cannot be stored."""
    if not reasons:
        return
    changes = [
        {"row": id_, "words": joined_note(reasons[key], note)}
        for key, (id_, note) in zip(commands, _by_id(connection, "id", "note"), strict=True)
        if key in reasons
    ]
    _update(connection, changes, used=sa.false(), note=sa.bindparam("words"))


def _update(connection: sa.Connection, changes: list[dict[str, Any]], **values: Any) -> None:
    """Change rows of measurements, which `changes` name as `row`."""
    query = _MEASUREMENTS.update().where(_MEASUREMENTS.c.id == sa.bindparam("row")).values(values)
    for start in range(0, len(changes), _ROWS_AT_ONCE):
        connection.execute(query, changes[start : start + _ROWS_AT_ONCE])
