"""Creates applications, runs, decisions, outcomes and tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables of the service."""
    _create_history()
    _create_decisions()
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("revoked_at", sa.String(40)),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )


def _create_history() -> None:
    op.create_table(
        "applications",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("executable", sa.String(1000), nullable=False),
        sa.Column("program", sa.String(255), nullable=False),
        sa.Column("user", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_applications"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_applications_system_id"),
        sa.UniqueConstraint(
            "system_id", "user", "executable", name="uq_applications_system_id_user_executable"
        ),
    )
    op.create_index("ix_applications_system_id_program", "applications", ["system_id", "program"])
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
        sa.Column("phases", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_runs_system_id"),
        sa.ForeignKeyConstraint(
            ["application_id"], ["applications.id"], name="fk_runs_application_id"
        ),
        sa.UniqueConstraint("system_id", "sha256", name="uq_runs_system_id_sha256"),
    )
    op.create_index("ix_runs_application_id", "runs", ["application_id"])
    op.create_index("ix_runs_system_id_name", "runs", ["system_id", "name"])
    op.create_index("ix_runs_revision", "runs", ["revision"])


def _create_decisions() -> None:
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
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
    )
    op.create_index("ix_decisions_asked_at_source", "decisions", ["asked_at", "source"])
    op.create_index(
        "ix_decisions_system_job_id_asked_at", "decisions", ["system", "job_id", "asked_at"]
    )
    op.create_index("ix_decisions_system_asked_at", "decisions", ["system", "asked_at"])
    op.create_index(
        "ix_decisions_application_id_asked_at", "decisions", ["application_id", "asked_at"]
    )
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
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_outcomes_system_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_outcomes_run_id"),
        sa.UniqueConstraint("system_id", "job_id", name="uq_outcomes_system_id_job_id"),
    )
    op.create_index("ix_outcomes_decision_id", "outcomes", ["decision_id"])
    op.create_index("ix_outcomes_run_id", "outcomes", ["run_id"])
    op.create_index("ix_outcomes_revision", "outcomes", ["revision"])


def downgrade() -> None:
    """Drop the tables with all their rows."""
    for table in ("tokens", "outcomes", "decisions", "runs", "applications"):
        op.drop_table(table)
