"""Numbers repetitions by engine, stores the campaign of a measurement, and removes empty texts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_OLD_NAME = "uq_measurements_system_id_configuration_id_io_nodes_repetition"
_NEW_NAME = "uq_measurements_repetition"
_INDEX = "ix_measurements_import_id"
_CELL = "system_id, configuration_id, io_nodes"
_TEXTS = ("started", "engine_version", "command", "note")
_MEASUREMENTS = sa.table("measurements", *map(sa.column, _TEXTS))


def upgrade() -> None:
    """Number the repetitions of each engine from 0, in their present order."""
    with op.batch_alter_table("measurements") as table:
        table.drop_constraint(_OLD_NAME, type_="unique")
        table.add_column(sa.Column("campaign", sa.String(200)))
    _number(f"{_CELL}, engine", "repetition")
    for name in _TEXTS:
        column = _MEASUREMENTS.c[name]
        op.execute(_MEASUREMENTS.update().where(column == "").values({column: None}))
    with op.batch_alter_table("measurements") as table:
        columns = ["system_id", "configuration_id", "io_nodes", "engine", "repetition"]
        table.create_unique_constraint(_NEW_NAME, columns)
        table.create_index(_INDEX, ["import_id"])


def downgrade() -> None:
    """Number the repetitions over all engines, in the order of import; campaigns are lost."""
    with op.batch_alter_table("measurements") as table:
        table.drop_index(_INDEX)
        table.drop_constraint(_NEW_NAME, type_="unique")
        table.drop_column("campaign")
    _number(_CELL, "id")
    with op.batch_alter_table("measurements") as table:
        columns = ["system_id", "configuration_id", "io_nodes", "repetition"]
        table.create_unique_constraint(_OLD_NAME, columns)


def _number(cell: str, order: str) -> None:
    places = (
        f"SELECT id, row_number() OVER (PARTITION BY {cell} ORDER BY {order}) - 1 AS place"  # noqa: S608
        " FROM measurements"
    )
    op.execute(
        f"UPDATE measurements SET repetition = numbered.place FROM ({places}) AS numbered"  # noqa: S608
        " WHERE numbered.id = measurements.id"
    )
