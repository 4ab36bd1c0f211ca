"""Creates the table of kept results: results of uploads that users chose to keep."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the table, which is empty at first."""
    op.create_table(
        "kept_results",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("kept_at", sa.String(40), nullable=False),
        sa.Column("expires_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_kept_results"),
        sa.UniqueConstraint("sha256", name="uq_kept_results_sha256"),
    )
    op.create_index("ix_kept_results_expires_at", "kept_results", ["expires_at"])


def downgrade() -> None:
    """Drop the table with all kept results."""
    op.drop_table("kept_results")
