"""Adds the table of systems whose schedulers get no decisions."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "paused_systems",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system", sa.String(200), nullable=False),
        sa.Column("paused_by", sa.String(100), nullable=False),
        sa.Column("paused_at", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(500)),
        sa.PrimaryKeyConstraint("id", name="pk_paused_systems"),
        sa.UniqueConstraint("system", name="uq_paused_systems_system"),
    )


def downgrade() -> None:
    """Drop the table; the decisions of all systems begin again."""
    op.drop_table("paused_systems")
