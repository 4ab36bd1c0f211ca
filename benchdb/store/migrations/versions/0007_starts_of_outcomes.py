"""Stores the start of each outcome, because ids of jobs come again."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_OLD = "uq_outcomes_system_id_job_id"
_NEW = "uq_outcomes_system_id_job_id_started"


def upgrade() -> None:
    """Add the start: that of the outcome's log, in whole seconds; null without a log."""
    op.add_column("outcomes", sa.Column("started", sa.String(40)))
    op.execute(
        "UPDATE outcomes SET started = (SELECT substr(runs.started, 1, 19) || '.000000+00:00'"
        " FROM runs WHERE runs.id = outcomes.run_id) WHERE run_id IS NOT NULL"
    )
    with op.batch_alter_table("outcomes") as table:
        table.drop_constraint(_OLD, type_="unique")
        table.create_unique_constraint(_NEW, ["system_id", "job_id", "started"])


def downgrade() -> None:
    """Keep only the newest outcome of each job."""
    op.execute(
        "DELETE FROM outcomes WHERE id NOT IN"
        " (SELECT max(id) FROM outcomes GROUP BY system_id, job_id)"
    )
    with op.batch_alter_table("outcomes") as table:
        table.drop_constraint(_NEW, type_="unique")
        table.drop_column("started")
        table.create_unique_constraint(_OLD, ["system_id", "job_id"])
