"""Creates the table of deleted runs, and the indexes that find old runs and outcomes."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
_COUNTERS = ("deleted runs", "forgotten deleted runs")


def upgrade() -> None:
    """Create the table, which is empty at first, its counters and the indexes."""
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
    counters = sa.table("counters", sa.column("name", sa.String), sa.column("value", sa.Integer))
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in _COUNTERS])
    op.create_index("ix_runs_stored_at", "runs", ["stored_at"])
    op.create_index("ix_outcomes_reported_at", "outcomes", ["reported_at"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_outcomes_reported_at", "outcomes")
    op.drop_index("ix_runs_stored_at", "runs")
    counters = sa.table("counters", sa.column("name", sa.String))
    op.execute(sa.delete(counters).where(counters.c.name.in_(_COUNTERS)))
    op.drop_table("deleted_runs")
