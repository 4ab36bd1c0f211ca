"""The tables of the database, as the newest migration leaves them."""

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
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# `revision` gets a new random value with each change of the system's measurements. Imports cannot
# show every change: SQLite reuses the id of a deleted import, and an edited export has the hash and
# the time of the import that it replaces. Nothing from before `valid_since` counts, because the
# machine changed then. A system with `paused_at` gets no decisions. Times are in the form of
# `ioncast_base.times.in_utc`.
systems = Table(
    "systems",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("revision", String(32)),
    Column("valid_since", String(40)),
    Column("change_why", String(500)),
    Column("change_noted_at", String(40)),
    Column("paused_at", String(40)),
    Column("paused_by", String(100)),
    Column("pause_reason", String(500)),
)

# A configuration is one benchmark run without its number of I/O nodes. `pattern` is its canonical
# IOR command line with tasks and nodes. It makes the row unique, because tasks and nodes may be
# null. `conditions` are words for a shell.
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
    Column("fsync", String(10)),
    Column("reorder_tasks", Boolean, nullable=False),
    Column("intra_test_barriers", Boolean, nullable=False),
    Column("conditions", String(250), nullable=False, server_default=text("''")),
)

# The columns that are fields of `IorConfig` by the same name. Storing, exporting and importing go
# through them, so a new column is added to the table above, in a migration and in `IorConfig`.
CONFIGURATION_FIELDS = tuple(
    column.name for column in configurations.c if column.name not in {"id", "pattern", "operation"}
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

# `used` is false for rows that their own file sets apart; `note` says why. `before_change` is true
# for rows from before `valid_since` of their system. The columns of the unique constraint are in
# the order in which curves are read. The constraint has a name of its own, because the name by
# convention is longer than PostgreSQL allows.
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
    Column("before_change", Boolean, nullable=False, server_default=false()),
    UniqueConstraint(
        "system_id",
        "configuration_id",
        "io_nodes",
        "engine",
        "repetition",
        name="uq_measurements_repetition",
    ),
)

# Results of mdtest: rates of operations on files. `tasks` and the columns up to `bytes_per_file`
# describe the run. Whether a row is from before a change of the system follows from `started`.
file_rates = Table(
    "file_rates",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False, index=True),
    Column("import_id", ForeignKey("imports.id"), nullable=False, index=True),
    Column("operation", String(20), nullable=False),
    Column("io_nodes", Integer, nullable=False),
    Column("files_per_s", Float, nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("nodes", Integer),
    Column("files_per_process", Integer),
    Column("unique_directory", Boolean, nullable=False),
    Column("bytes_per_file", BigInteger, nullable=False),
    Column("started", String(40)),
    Column("engine_version", String(40)),
    Column("command", String(4000)),
    Column("used", Boolean, nullable=False),
    Column("note", String(1000)),
    Column("campaign", String(200)),
)

# `document` is the model as JSON; only the predictor reads it. `state` is the digest of the
# measurements that the model was fitted to (see `benchdb.store.fitted_models.state_of`).
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


# A fidelity tells how far the run of a configuration agreed with a phase of an application.
# `pattern` is that of a configuration, which may not be measured yet. `aspects` is JSON; only the
# predictor reads it.
fidelities = Table(
    "fidelities",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("pattern", String(500), nullable=False),
    Column("fidelity", Float, nullable=False),
    Column("log", String(1000), nullable=False),
    Column("phase", Integer, nullable=False),
    Column("verified_at", String(40), nullable=False),
    Column("aspects", Text, nullable=False),
    UniqueConstraint("system_id", "pattern"),
)


def longest(column: Column[Any]) -> int:
    """The largest number of characters in a text column."""
    assert isinstance(column.type, String)  # noqa: S101
    assert column.type.length is not None  # noqa: S101
    return column.type.length
