"""Creates the table of the logs of runs, because a run may have several."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table, and fill it: each stored run has one log."""
    op.create_table(
        "run_logs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run_logs"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_run_logs_system_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_logs_run_id"),
        sa.UniqueConstraint("system_id", "sha256", name="uq_run_logs_system_id_sha256"),
    )
    op.create_index("ix_run_logs_run_id", "run_logs", ["run_id"])
    op.execute(
        "INSERT INTO run_logs (system_id, sha256, run_id)"
        " SELECT system_id, sha256, id FROM runs ORDER BY id"
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("run_logs")
