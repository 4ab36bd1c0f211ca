"""Creates the table of insights: the characterisation of a run and the results of its checks."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table. Stored runs get insights when their logs are sent again."""
    op.create_table(
        "insights",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("made_at", sa.String(40), nullable=False),
        sa.Column("characterisation", sa.Text, nullable=False),
        sa.Column("checks", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_insights"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_insights_run_id"),
        sa.UniqueConstraint("run_id", name="uq_insights_run_id"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("insights")
