"""Creates the counts of expired decisions, and a counter of the bytes that decisions take."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
_BYTES_OF_A_ROW = 500
_TEXTS = (
    *("id", "asked_at", "system", "user", "executable", "name", "job_id", "source", "why"),
    "curve",
)


def upgrade() -> None:
    """Create the tables, and count the bytes of the stored decisions."""
    op.create_table(
        "expired_decisions",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("hour", sa.String(13), nullable=False),
        sa.Column("system", sa.String(200)),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_expired_decisions"),
        sa.UniqueConstraint("hour", "system", "source", name="uq_expired_decisions_hour"),
    )
    op.create_table(
        "drained_spools",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("file", sa.String(100), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_drained_spools"),
        sa.UniqueConstraint("file", name="uq_drained_spools_file"),
    )
    counters = op.create_table(
        "counters",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_counters"),
        sa.UniqueConstraint("name", name="uq_counters_name"),
    )
    decisions = sa.table("decisions", *(sa.column(name, sa.String) for name in _TEXTS))
    size = sum(
        (sa.func.coalesce(sa.func.length(column), 0) for column in decisions.c),
        sa.literal(_BYTES_OF_A_ROW),
    )
    known = op.get_bind().scalar(sa.select(sa.func.coalesce(sa.func.sum(size), 0)))
    op.bulk_insert(counters, [{"name": "bytes of decisions", "value": known}])


def downgrade() -> None:
    """Drop the tables; the expired decisions are no longer counted."""
    op.drop_table("counters")
    op.drop_table("drained_spools")
    op.drop_table("expired_decisions")
