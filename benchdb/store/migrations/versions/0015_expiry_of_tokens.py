"""Adds the time when a token expires."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column; tokens of older databases do not expire."""
    op.add_column("tokens", sa.Column("expires_at", sa.String(40)))


def downgrade() -> None:
    """Revoke the tokens that expire, because older versions would accept them for ever."""
    op.execute(
        "UPDATE tokens SET revoked_at = expires_at"
        " WHERE expires_at IS NOT NULL AND revoked_at IS NULL"
    )
    op.drop_column("tokens", "expires_at")
