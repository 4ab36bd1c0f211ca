"""Adds an index that finds the newest outcomes of a system."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_outcomes_system_id_id", "outcomes", ["system_id", "id"])


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("ix_outcomes_system_id_id", "outcomes")
