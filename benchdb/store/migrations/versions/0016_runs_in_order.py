"""Replaces the index of the runs of an application by one in the order of their times."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the new index, and drop the one that it makes superfluous."""
    op.create_index(
        "ix_runs_application_id_time",
        "runs",
        ["application_id", sa.text("coalesce(started, stored_at)"), "id"],
    )
    op.drop_index("ix_runs_application_id", "runs")


def downgrade() -> None:
    """Create the old index again."""
    op.create_index("ix_runs_application_id", "runs", ["application_id"])
    op.drop_index("ix_runs_application_id_time", "runs")
