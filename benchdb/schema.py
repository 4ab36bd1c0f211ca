"""Tables of the benchmark database, as of the newest migration."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# `revision` is another one, never seen before, after each change of the system's measurements.
# Imports do not tell: SQLite gives the id of a deleted one again, and an export that was
# edited brings the hash and the time of the import that it replaces.
systems = Table(
    "systems",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("revision", String(32)),
)

# One benchmark run without its number of I/O nodes. `pattern` is its canonical IOR line
# with tasks and nodes, and what makes it unique: several of the others may be null.
configurations = Table(
    "configurations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("pattern", String(500), nullable=False, unique=True),
    Column("api", String(20), nullable=False),
    Column("operation", String(20), nullable=False),
    Column("file_per_process", Boolean, nullable=False),
    Column("collective", Boolean, nullable=False),
    Column("random_offsets", Integer, nullable=False),
    Column("transfer_size", BigInteger, nullable=False),
    Column("block_size", BigInteger, nullable=False),
    Column("segments", BigInteger, nullable=False),
    Column("tasks", Integer),
    Column("nodes", Integer),
    Column("odirect", Boolean, nullable=False),
    Column("fsync", Boolean, nullable=False),
    Column("reorder_tasks", Boolean, nullable=False),
    Column("intra_test_barriers", Boolean, nullable=False),
)

imports = Table(
    "imports",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("file", String(1000), nullable=False),
    Column("format", String(40), nullable=False),
    Column("imported_at", String(40), nullable=False),
    UniqueConstraint("system_id", "sha256"),
    Index(None, "system_id", "id"),
)

# `used` is false for rows that their own file sets apart; `note` says why. What names a
# measurement is in the order in which curves are read. The constraint's name by convention
# would be longer than PostgreSQL's limit.
measurements = Table(
    "measurements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("configuration_id", ForeignKey("configurations.id"), nullable=False),
    Column("import_id", ForeignKey("imports.id"), nullable=False, index=True),
    Column("io_nodes", Integer, nullable=False),
    Column("repetition", Integer, nullable=False),
    Column("bandwidth_mib_s", Float, nullable=False),
    Column("bytes", BigInteger),
    Column("time_s", Float),
    Column("started", String(40)),
    Column("engine", String(40), nullable=False),
    Column("engine_version", String(40)),
    Column("command", String(4000)),
    Column("used", Boolean, nullable=False),
    Column("note", String(1000)),
    Column("campaign", String(200)),
    UniqueConstraint(
        "system_id",
        "configuration_id",
        "io_nodes",
        "engine",
        "repetition",
        name="uq_measurements_repetition",
    ),
)

# What a model is, `document` says to the predictor alone; `state` is of the measurements
# that it was fitted on.
models = Table(
    "models",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("engine", String(40), nullable=False),
    Column("state", String(64), nullable=False),
    Column("fitted_at", String(40), nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("system_id", "engine"),
)


def longest(column: Column[Any]) -> int:
    """How many characters a text column takes."""
    assert isinstance(column.type, String)  # noqa: S101
    assert column.type.length is not None  # noqa: S101
    return column.type.length
