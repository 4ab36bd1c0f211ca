"""Adds columns and indexes for lists of applications, and an index that finds the runs of a job."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
_ORDERS = ("newest", "runs", "program", "user")


def upgrade() -> None:
    """Count the runs of each application, and create the indexes."""
    op.add_column(
        "applications", sa.Column("runs", sa.Integer, nullable=False, server_default=sa.text("0"))
    )
    op.add_column("applications", sa.Column("newest", sa.String(40)))
    op.execute(
        "UPDATE applications SET"
        " runs = (SELECT count(*) FROM runs WHERE runs.application_id = applications.id),"
        " newest = (SELECT max(coalesce(runs.started, runs.stored_at)) FROM runs"
        " WHERE runs.application_id = applications.id)"
    )
    for name in _ORDERS:
        op.create_index(f"ix_applications_{name}_id", "applications", [name, "id"])
    op.create_index("ix_runs_job_id_system_id", "runs", ["job_id", "system_id"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_runs_job_id_system_id", "runs")
    for name in _ORDERS:
        op.drop_index(f"ix_applications_{name}_id", "applications")
    op.drop_column("applications", "newest")
    op.drop_column("applications", "runs")
