"""Adds to decisions whether their number of I/O nodes was tried."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column; no older decision was a trial."""
    op.add_column(
        "decisions",
        sa.Column("explored", sa.Boolean, nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_column("decisions", "explored")
