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


# What a job is an instance of: a program of a user. `program` is the executable without its
# folder, because a job script seldom says that.
applications = Table(
    "applications",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("executable", String(1000), nullable=False),
    Column("program", String(255), nullable=False),
    Column("user", String(100), nullable=False),
    UniqueConstraint("system_id", "user", "executable"),
    Index(None, "system_id", "program"),
)

# One run of an application, from its Darshan log. `phases` is JSON as of `ioncast phases`,
# `pattern` the kind of I/O that moved most of their bytes. `revision` is greater than that of
# any other row after each change of a row, so that whoever keeps the greatest one that they
# have seen finds what is new.
runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("application_id", ForeignKey("applications.id"), nullable=False, index=True),
    Column("sha256", String(64), nullable=False),
    Column("job_id", String(100)),
    Column("name", String(200)),
    Column("tasks", Integer, nullable=False),
    Column("nodes", Integer),
    Column("io_nodes", Integer),
    Column("bandwidth_mib_s", Float),
    Column("started", String(40)),
    Column("stored_at", String(40), nullable=False),
    Column("pattern", String(100)),
    Column("phases", Text, nullable=False),
    Column("revision", Integer, nullable=False, index=True),
    UniqueConstraint("system_id", "sha256"),
    Index(None, "system_id", "name"),
)

# What schedulers asked and were told. Systems and applications need not be known, and rows come
# later than the answers, so nothing refers to other tables. `curve` is JSON: a list of
# [io_nodes, expected, p10, p90] in MiB/s.
decisions = Table(
    "decisions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("asked_at", String(40), nullable=False),
    Column("system", String(200), nullable=False),
    Column("user", String(100)),
    Column("executable", String(1000)),
    Column("name", String(200)),
    Column("job_id", String(100)),
    Column("nodes", Integer),
    Column("tasks", Integer),
    Column("available", Integer),
    Column("io_nodes", Integer),
    Column("source", String(20), nullable=False),
    Column("expected_mib_s", Float),
    Column("confidence", Float),
    Column("application_id", Integer),
    Column("why", Text, nullable=False),
    Column("curve", Text, nullable=False),
    Index(None, "asked_at", "source"),
    Index(None, "system", "job_id", "asked_at"),
    Index(None, "system", "asked_at"),
    Index(None, "application_id", "asked_at"),
)

# What jobs that ran got; `decision_id` is as it was reported, and need not be stored yet.
# `revision` is as in `runs`.
outcomes = Table(
    "outcomes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("job_id", String(100), nullable=False),
    Column("decision_id", String(32), index=True),
    Column("run_id", ForeignKey("runs.id"), index=True),
    Column("io_nodes", Integer, nullable=False),
    Column("bandwidth_mib_s", Float, nullable=False),
    Column("reported_at", String(40), nullable=False),
    Column("revision", Integer, nullable=False, index=True),
    UniqueConstraint("system_id", "job_id"),
    Index(None, "system_id", "id"),
)

# Who may do what over HTTP. A token itself is nowhere: it is 256 random bits, so that its
# SHA-256 tells nothing of it.
tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("created_at", String(40), nullable=False),
    Column("revoked_at", String(40)),
)


def longest(column: Column[Any]) -> int:
    """How many characters a text column takes."""
    assert isinstance(column.type, String)  # noqa: S101
    assert column.type.length is not None  # noqa: S101
    return column.type.length
