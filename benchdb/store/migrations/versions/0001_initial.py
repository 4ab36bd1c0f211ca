"""Creates all tables, as they are in the first release."""

import sqlalchemy as sa
from alembic import op

revision = "initial"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    _measurements()
    _models()
    _runs()
    _outcomes()
    _decisions()
    _service()


def _measurements() -> None:
    op.create_table(
        "systems",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("revision", sa.String(32)),
        sa.Column("valid_since", sa.String(40)),
        sa.Column("change_why", sa.String(500)),
        sa.Column("change_noted_at", sa.String(40)),
        sa.Column("paused_at", sa.String(40)),
        sa.Column("paused_by", sa.String(100)),
        sa.Column("pause_reason", sa.String(500)),
        sa.PrimaryKeyConstraint("id", name="pk_systems"),
        sa.UniqueConstraint("name", name="uq_systems_name"),
    )
    op.create_table(
        "configurations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("pattern", sa.String(500), nullable=False),
        sa.Column("api", sa.String(20), nullable=False),
        sa.Column("operation", sa.String(20), nullable=False),
        sa.Column("file_per_process", sa.Boolean, nullable=False),
        sa.Column("collective", sa.Boolean, nullable=False),
        sa.Column("random_offsets", sa.Integer, nullable=False),
        sa.Column("transfer_size", sa.BigInteger, nullable=False),
        sa.Column("block_size", sa.BigInteger, nullable=False),
        sa.Column("segments", sa.BigInteger, nullable=False),
        sa.Column("tasks", sa.Integer),
        sa.Column("nodes", sa.Integer),
        sa.Column("odirect", sa.Boolean, nullable=False),
        sa.Column("fsync", sa.String(10)),
        sa.Column("reorder_tasks", sa.Boolean, nullable=False),
        sa.Column("intra_test_barriers", sa.Boolean, nullable=False),
        sa.Column("conditions", sa.String(250), server_default=sa.text("''"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_configurations"),
        sa.UniqueConstraint("pattern", name="uq_configurations_pattern"),
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("file", sa.String(1000), nullable=False),
        sa.Column("format", sa.String(40), nullable=False),
        sa.Column("imported_at", sa.String(40), nullable=False),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_imports_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
        sa.UniqueConstraint("system_id", "sha256", name="uq_imports_system_id_sha256"),
    )
    op.create_index("ix_imports_system_id_id", "imports", ["system_id", "id"])
    op.create_table(
        "measurements",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("configuration_id", sa.Integer, nullable=False),
        sa.Column("import_id", sa.Integer, nullable=False),
        sa.Column("io_nodes", sa.Integer, nullable=False),
        sa.Column("repetition", sa.Integer, nullable=False),
        sa.Column("bandwidth_mib_s", sa.Float, nullable=False),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("time_s", sa.Float),
        sa.Column("started", sa.String(40)),
        sa.Column("engine", sa.String(40), nullable=False),
        sa.Column("engine_version", sa.String(40)),
        sa.Column("command", sa.String(4000)),
        sa.Column("used", sa.Boolean, nullable=False),
        sa.Column("note", sa.String(1000)),
        sa.Column("campaign", sa.String(200)),
        sa.Column("before_change", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["configuration_id"], ["configurations.id"], name="fk_measurements_configuration_id"
        ),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_measurements_import_id"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_measurements_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
        sa.UniqueConstraint(
            "system_id",
            "configuration_id",
            "io_nodes",
            "engine",
            "repetition",
            name="uq_measurements_repetition",
        ),
    )
    op.create_index("ix_measurements_import_id", "measurements", ["import_id"])
    op.create_table(
        "file_rates",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("import_id", sa.Integer, nullable=False),
        sa.Column("operation", sa.String(20), nullable=False),
        sa.Column("io_nodes", sa.Integer, nullable=False),
        sa.Column("files_per_s", sa.Float, nullable=False),
        sa.Column("tasks", sa.Integer, nullable=False),
        sa.Column("nodes", sa.Integer),
        sa.Column("files_per_process", sa.Integer),
        sa.Column("unique_directory", sa.Boolean, nullable=False),
        sa.Column("bytes_per_file", sa.BigInteger, nullable=False),
        sa.Column("started", sa.String(40)),
        sa.Column("engine_version", sa.String(40)),
        sa.Column("command", sa.String(4000)),
        sa.Column("used", sa.Boolean, nullable=False),
        sa.Column("note", sa.String(1000)),
        sa.Column("campaign", sa.String(200)),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_file_rates_import_id"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_file_rates_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_file_rates"),
    )
    op.create_index("ix_file_rates_import_id", "file_rates", ["import_id"])
    op.create_index("ix_file_rates_system_id", "file_rates", ["system_id"])


def _models() -> None:
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("engine", sa.String(40), nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("fitted_at", sa.String(40), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_models_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("system_id", "engine", name="uq_models_system_id_engine"),
    )
    op.create_table(
        "fidelities",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("pattern", sa.String(500), nullable=False),
        sa.Column("fidelity", sa.Float, nullable=False),
        sa.Column("log", sa.String(1000), nullable=False),
        sa.Column("phase", sa.Integer, nullable=False),
        sa.Column("verified_at", sa.String(40), nullable=False),
        sa.Column("aspects", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_fidelities_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_fidelities"),
        sa.UniqueConstraint("system_id", "pattern", name="uq_fidelities_system_id_pattern"),
    )


def _runs() -> None:
    op.create_table(
        "applications",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("executable", sa.String(1000), nullable=False),
        sa.Column("program", sa.String(255), nullable=False),
        sa.Column("user", sa.String(100), nullable=False),
        sa.Column("runs", sa.Integer, server_default=sa.text("0"), nullable=False),
        sa.Column("newest", sa.String(40)),
        sa.Column("io_seconds", sa.Float, server_default=sa.text("0"), nullable=False),
        sa.Column("stake_seconds", sa.Float, server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_applications_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_applications"),
        sa.UniqueConstraint(
            "system_id", "user", "executable", name="uq_applications_system_id_user_executable"
        ),
    )
    op.create_index("ix_applications_io_seconds_id", "applications", ["io_seconds", "id"])
    op.create_index("ix_applications_stake_seconds_id", "applications", ["stake_seconds", "id"])
    op.create_index("ix_applications_newest_id", "applications", ["newest", "id"])
    op.create_index("ix_applications_program_id", "applications", ["program", "id"])
    op.create_index("ix_applications_runs_id", "applications", ["runs", "id"])
    op.create_index("ix_applications_system_id_program", "applications", ["system_id", "program"])
    op.create_index("ix_applications_user_id", "applications", ["user", "id"])
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("application_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(100)),
        sa.Column("name", sa.String(200)),
        sa.Column("tasks", sa.Integer, nullable=False),
        sa.Column("nodes", sa.Integer),
        sa.Column("io_nodes", sa.Integer),
        sa.Column("bandwidth_mib_s", sa.Float),
        sa.Column("started", sa.String(40)),
        sa.Column("stored_at", sa.String(40), nullable=False),
        sa.Column("pattern", sa.String(100)),
        sa.Column("outcome_scatter", sa.Float, nullable=False, server_default=sa.text("0")),
        sa.Column("phases", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_runs_application_id"
        ),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_runs_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("system_id", "sha256", name="uq_runs_system_id_sha256"),
    )
    op.create_index(
        "ix_runs_application_id_time",
        "runs",
        ["application_id", sa.text("coalesce(started, stored_at)"), "id"],
    )
    op.create_index("ix_runs_job_id_system_id", "runs", ["job_id", "system_id"])
    op.create_index("ix_runs_revision", "runs", ["revision"])
    op.create_index("ix_runs_stored_at", "runs", ["stored_at"])
    op.create_index("ix_runs_system_id_name", "runs", ["system_id", "name"])
    op.create_index("ix_runs_system_id_pattern", "runs", ["system_id", "pattern"])
    op.create_table(
        "run_logs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_logs_run_id"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_run_logs_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run_logs"),
        sa.UniqueConstraint("system_id", "sha256", name="uq_run_logs_system_id_sha256"),
    )
    op.create_index("ix_run_logs_run_id", "run_logs", ["run_id"])
    op.create_table(
        "insights",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("made_at", sa.String(40), nullable=False),
        sa.Column("characterisation", sa.Text, nullable=False),
        sa.Column("checks", sa.Text, nullable=False),
        sa.Column("io_seconds", sa.Float, nullable=False),
        sa.Column("stake_seconds", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_insights_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_insights"),
        sa.UniqueConstraint("run_id", name="uq_insights_run_id"),
    )


def _outcomes() -> None:
    op.create_table(
        "queue_reports",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system", sa.String(200), nullable=False),
        sa.Column("reported_at", sa.String(40), nullable=False),
        sa.Column("io_nodes", sa.Integer, nullable=False),
        sa.Column("in_use", sa.Integer, nullable=False),
        sa.Column("waiting", sa.Integer, nullable=False),
        sa.Column("for_io_nodes", sa.Integer, nullable=False),
        sa.Column("arbiter_works", sa.Boolean),
        sa.PrimaryKeyConstraint("id", name="pk_queue_reports"),
    )
    op.create_index("ix_queue_reports_reported_at", "queue_reports", ["reported_at"])
    op.create_table(
        "outcomes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("job_id", sa.String(100), nullable=False),
        sa.Column("decision_id", sa.String(32)),
        sa.Column("run_id", sa.Integer),
        sa.Column("io_nodes", sa.Integer, nullable=False),
        sa.Column("bandwidth_mib_s", sa.Float, nullable=False),
        sa.Column("reported_at", sa.String(40), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("started", sa.String(40)),
        sa.Column("submitted", sa.String(40)),
        sa.Column("ended", sa.String(40)),
        sa.Column("io_node_names", sa.Text),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_outcomes_run_id"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_outcomes_system_id"),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.UniqueConstraint(
            "system_id", "job_id", "started", name="uq_outcomes_system_id_job_id_started"
        ),
    )
    op.create_index("ix_outcomes_decision_id", "outcomes", ["decision_id"])
    op.create_index("ix_outcomes_reported_at", "outcomes", ["reported_at"])
    op.create_index("ix_outcomes_revision", "outcomes", ["revision"])
    op.create_index("ix_outcomes_run_id", "outcomes", ["run_id"])
    op.create_index("ix_outcomes_system_id_id", "outcomes", ["system_id", "id"])
    op.create_table(
        "deleted_runs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("system", sa.String(200), nullable=False),
        sa.Column("executable", sa.String(1000), nullable=False),
        sa.Column("user", sa.String(100), nullable=False),
        sa.Column("name", sa.String(200)),
        sa.Column("deleted_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_runs"),
        sa.UniqueConstraint("number", name="uq_deleted_runs_number"),
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("asked_at", sa.String(40), nullable=False),
        sa.Column("system", sa.String(200), nullable=False),
        sa.Column("user", sa.String(100)),
        sa.Column("executable", sa.String(1000)),
        sa.Column("name", sa.String(200)),
        sa.Column("job_id", sa.String(100)),
        sa.Column("nodes", sa.Integer),
        sa.Column("tasks", sa.Integer),
        sa.Column("available", sa.Integer),
        sa.Column("io_nodes", sa.Integer),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("expected_mib_s", sa.Float),
        sa.Column("confidence", sa.Float),
        sa.Column("application_id", sa.Integer),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("curve", sa.Text, nullable=False),
        sa.Column("explored", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
    )
    op.create_index(
        "ix_decisions_application_id_asked_at", "decisions", ["application_id", "asked_at"]
    )
    op.create_index("ix_decisions_asked_at_source", "decisions", ["asked_at", "source"])
    op.create_index("ix_decisions_system_asked_at", "decisions", ["system", "asked_at"])
    op.create_index(
        "ix_decisions_system_job_id_asked_at", "decisions", ["system", "job_id", "asked_at"]
    )
    op.create_table(
        "drained_spools",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("file", sa.String(100), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_drained_spools"),
        sa.UniqueConstraint("file", name="uq_drained_spools_file"),
    )


def _service() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("revoked_at", sa.String(40)),
        sa.Column("expires_at", sa.String(40)),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )
    op.create_table(
        "kept_results",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("kept_at", sa.String(40), nullable=False),
        sa.Column("expires_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_kept_results"),
        sa.UniqueConstraint("sha256", name="uq_kept_results_sha256"),
    )
    op.create_index("ix_kept_results_expires_at", "kept_results", ["expires_at"])
    counters = op.create_table(
        "counters",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_counters"),
        sa.UniqueConstraint("name", name="uq_counters_name"),
    )
    names = ("deleted runs", "forgotten deleted runs")
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in names])
