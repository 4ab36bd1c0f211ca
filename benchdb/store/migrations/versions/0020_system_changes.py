"""Creates the changes of systems, and marks the measurements from before them."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create the table, which is empty at first, so all measurements still count."""
    op.create_table(
        "system_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("since", sa.String(40), nullable=False),
        sa.Column("why", sa.String(500), nullable=False),
        sa.Column("noted_by", sa.String(120), nullable=False),
        sa.Column("noted_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_system_changes"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_system_changes_system_id"),
    )
    op.create_index("ix_system_changes_system_id", "system_changes", ["system_id"])
    op.add_column(
        "measurements",
        sa.Column("before_change", sa.Boolean, nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Drop both; measurements from before a change count again."""
    op.drop_column("measurements", "before_change")
    op.drop_table("system_changes")
