"""Creates systems, configurations, imports and measurements."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "systems",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_systems"),
        sa.UniqueConstraint("name", name="uq_systems_name"),
    )
    op.create_table(
        "configurations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("pattern", sa.String(500), nullable=False),
        sa.Column("api", sa.String(20), nullable=False),
        sa.Column("operation", sa.String(20), nullable=False),
        sa.Column("file_per_process", sa.Boolean, nullable=False),
        sa.Column("collective", sa.Boolean, nullable=False),
        sa.Column("random_offsets", sa.Integer, nullable=False),
        sa.Column("transfer_size", sa.BigInteger, nullable=False),
        sa.Column("block_size", sa.BigInteger, nullable=False),
        sa.Column("segments", sa.BigInteger, nullable=False),
        sa.Column("tasks", sa.Integer),
        sa.Column("nodes", sa.Integer),
        sa.Column("odirect", sa.Boolean, nullable=False),
        sa.Column("fsync", sa.Boolean, nullable=False),
        sa.Column("reorder_tasks", sa.Boolean, nullable=False),
        sa.Column("intra_test_barriers", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_configurations"),
        sa.UniqueConstraint("pattern", name="uq_configurations_pattern"),
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("file", sa.String(1000), nullable=False),
        sa.Column("format", sa.String(40), nullable=False),
        sa.Column("imported_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_imports_system_id"),
        sa.UniqueConstraint("system_id", "sha256", name="uq_imports_system_id_sha256"),
    )
    op.create_table(
        "measurements",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("system_id", sa.Integer, nullable=False),
        sa.Column("configuration_id", sa.Integer, nullable=False),
        sa.Column("import_id", sa.Integer, nullable=False),
        sa.Column("io_nodes", sa.Integer, nullable=False),
        sa.Column("repetition", sa.Integer, nullable=False),
        sa.Column("bandwidth_mib_s", sa.Float, nullable=False),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("time_s", sa.Float),
        sa.Column("started", sa.String(40)),
        sa.Column("engine", sa.String(40), nullable=False),
        sa.Column("engine_version", sa.String(40)),
        sa.Column("command", sa.String(4000)),
        sa.Column("used", sa.Boolean, nullable=False),
        sa.Column("note", sa.String(1000)),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"], name="fk_measurements_system_id"),
        sa.ForeignKeyConstraint(
            ["configuration_id"], ["configurations.id"], name="fk_measurements_configuration_id"
        ),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_measurements_import_id"),
        sa.UniqueConstraint(
            "system_id",
            "configuration_id",
            "io_nodes",
            "repetition",
            name="uq_measurements_system_id_configuration_id_io_nodes_repetition",
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("measurements", "imports", "configurations", "systems"):
        op.drop_table(table)
