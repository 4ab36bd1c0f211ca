"""Creates the table of fidelities: how far benchmarks agreed with phases of applications."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "fidelities",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("pattern", sa.String(500), nullable=False),
        sa.Column("fidelity", sa.Float, nullable=False),
        sa.Column("log", sa.String(1000), nullable=False),
        sa.Column("phase", sa.Integer, nullable=False),
        sa.Column("verified_at", sa.String(40), nullable=False),
        sa.Column("aspects", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_fidelities"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_fidelities_system_id"),
        sa.UniqueConstraint("system_id", "pattern", name="uq_fidelities_system_id_pattern"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("fidelities")
