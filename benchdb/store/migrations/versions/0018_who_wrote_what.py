"""Creates the table that tells who wrote what."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Create the table, which is empty at first."""
    op.create_table(
        "writes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("by", sa.String(120), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("what", sa.String(1000), nullable=False),
        sa.Column("system", sa.String(200)),
        sa.PrimaryKeyConstraint("id", name="pk_writes"),
    )
    op.create_index("ix_writes_at", "writes", ["at"])
    op.create_index("ix_writes_by_id", "writes", ["by", "id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("writes")
