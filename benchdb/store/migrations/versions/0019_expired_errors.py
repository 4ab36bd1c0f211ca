"""Creates the sums of the errors of expired decisions and outcomes."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Create the table, which is empty at first."""
    op.create_table(
        "expired_errors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system", sa.String(200), nullable=False),
        sa.Column("month", sa.String(7), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("error_sum", sa.Float, nullable=False),
        sa.Column("inside", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_expired_errors"),
        sa.UniqueConstraint("system", "month", name="uq_expired_errors_system"),
    )


def downgrade() -> None:
    """Drop the sums."""
    op.drop_table("expired_errors")
