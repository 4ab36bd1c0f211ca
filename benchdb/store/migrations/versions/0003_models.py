"""Creates fitted models, and adds revisions that tell whether a model is current."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table; the revision of a system is null until its measurements change."""
    op.add_column("systems", sa.Column("revision", sa.String(32)))
    op.create_index("ix_imports_system_id_id", "imports", ["system_id", "id"])
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("engine", sa.String(40), nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("fitted_at", sa.String(40), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_models_system_id"),
        sa.UniqueConstraint("system_id", "engine", name="uq_models_system_id_engine"),
    )


def downgrade() -> None:
    """Drop the table and the revisions; models are lost."""
    op.drop_table("models")
    op.drop_index("ix_imports_system_id_id", "imports")
    op.drop_column("systems", "revision")
