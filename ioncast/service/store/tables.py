"""The service's tables: history, outcomes, decisions, tokens and kept results."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from benchdb.store.schema import metadata

# An application is a program of a user. `program` is the executable without its folder, because job
# scripts seldom name the folder. `runs` is the number of its runs, and `newest` the time of the
# newest one, so that a list of applications reads no runs. `io_seconds` and `stake_seconds` are the
# sums of those of its insights. Each order of the list has an index.
applications = Table(
    "applications",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("executable", String(1000), nullable=False),
    Column("program", String(255), nullable=False),
    Column("user", String(100), nullable=False),
    Column("runs", Integer, nullable=False, server_default=text("0")),
    Column("newest", String(40)),
    Column("io_seconds", Float, nullable=False, server_default=text("0")),
    Column("stake_seconds", Float, nullable=False, server_default=text("0")),
    UniqueConstraint("system_id", "user", "executable"),
    Index(None, "system_id", "program"),
    Index(None, "newest", "id"),
    Index(None, "runs", "id"),
    Index(None, "program", "id"),
    Index(None, "user", "id"),
    Index(None, "io_seconds", "id"),
    Index(None, "stake_seconds", "id"),
)

# A run of an application, from its Darshan log. `phases` is JSON from `ioncast phases`, and
# `pattern` is the kind of I/O that moved most bytes. `outcome_scatter` is how much evidence from
# servers widens the noise of the run as an outcome (docs/diagnosis.md). Each change of a row sets
# its `revision` to a number greater than all others, so a reader that remembers the greatest
# revision finds the newer changes.
runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("application_id", ForeignKey("applications.id"), nullable=False),
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
    Column("outcome_scatter", Float, nullable=False, server_default=text("0")),
    Column("phases", Text, nullable=False),
    Column("revision", Integer, nullable=False, index=True),
    UniqueConstraint("system_id", "sha256"),
    Index(None, "system_id", "name"),
    Index(None, "system_id", "pattern"),
    Index(None, "job_id", "system_id"),
    Index(None, "stored_at"),
    # The order of `RUN_TIME` in applications.py, so that a page of runs reads no other ones.
    Index(
        "ix_runs_application_id_time", "application_id", text("coalesce(started, stored_at)"), "id"
    ),
)

# The logs of each run: one, or one for each process of a program without MPI. With them a log is
# recognised that was sent with others before.
run_logs = Table(
    "run_logs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system_id", ForeignKey("systems.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False, index=True),
    UniqueConstraint("system_id", "sha256"),
)

# Insights into a run, made from all its logs: the characterisation and the results of the checks,
# both as JSON that only ioncast's service reads. `sha256` is that of the run's row when they were
# made; it differs from that row as soon as more logs join the run, and then they no longer count.
# `version` is that of the program parts that made them. `io_seconds` is the time of the slowest
# process in I/O and metadata, and `stake_seconds` the part of it that is at stake.
insights = Table(
    "insights",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("runs.id"), nullable=False, unique=True),
    Column("sha256", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("made_at", String(40), nullable=False),
    Column("characterisation", Text, nullable=False),
    Column("checks", Text, nullable=False),
    Column("io_seconds", Float, nullable=False),
    Column("stake_seconds", Float, nullable=False),
)

# A decision is a question of a scheduler with its answer. It has no foreign keys, because its
# system and application may be unknown and the row is stored after the answer was sent. `curve` is
# JSON: a list of [io_nodes, expected, p10, p90] with bandwidths in MiB/s.
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
    Column("explored", Boolean, nullable=False, server_default=false()),
    Index(None, "asked_at", "source"),
    Index(None, "system", "job_id", "asked_at"),
    Index(None, "system", "asked_at"),
    Index(None, "application_id", "asked_at"),
)

# How many bytes of a file of decisions are stored, so that a keeper that begins anew stores no
# decision again that has expired meanwhile.
drained_spools = Table(
    "drained_spools",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("file", String(100), nullable=False, unique=True),
    Column("bytes", BigInteger, nullable=False),
)

# An outcome is the bandwidth that a job got in one of its runs. `started` is the scheduler's start,
# or that of the log, in whole seconds; null if neither is known, and then the constraint does not
# count. `decision_id` is stored as it was reported, and that decision may be stored later or never.
# `submitted` and `ended` are those of the scheduler, in whole seconds, and null if unknown.
# `io_node_names` are the names of the job's I/O nodes with commas between.
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
    Column("started", String(40)),
    Column("submitted", String(40)),
    Column("ended", String(40)),
    Column("io_node_names", Text),
    UniqueConstraint("system_id", "job_id", "started"),
    Index(None, "system_id", "id"),
    Index(None, "reported_at"),
)

# The queue of a scheduler, as the collector reports it every few minutes. Like a decision, a report
# may be of an unknown system.
queue_reports = Table(
    "queue_reports",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("system", String(200), nullable=False),
    Column("reported_at", String(40), nullable=False, index=True),
    Column("io_nodes", Integer, nullable=False),
    Column("in_use", Integer, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("for_io_nodes", Integer, nullable=False),
    Column("arbiter_works", Boolean),
)

# The ways in which deleted runs were known, until all services have prepared their answers without
# them. Numbers are given once: SQLite gives the id of a deleted row again.
deleted_runs = Table(
    "deleted_runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    Column("system", String(200), nullable=False),
    Column("executable", String(1000), nullable=False),
    Column("user", String(100), nullable=False),
    Column("name", String(200)),
    Column("deleted_at", String(40), nullable=False),
)

# The tokens of the service's clients. A token has 256 random bits, so nobody can compute it from
# its stored SHA-256.
tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("created_at", String(40), nullable=False),
    Column("revoked_at", String(40)),
    Column("expires_at", String(40)),
)

# A result of an upload that a user chose to keep. `sha256` is that of the secret in its address, so
# nobody who reads the database finds the address. `document` is JSON that only ioncast's service
# reads, and `bytes` is its size.
kept_results = Table(
    "kept_results",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("document", Text, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("kept_at", String(40), nullable=False),
    Column("expires_at", String(40), nullable=False, index=True),
)

# Numbers that would take long to count; see stored_counters.py.
counters = Table(
    "counters",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("value", BigInteger, nullable=False),
)
