"""Runs the migrations for Alembic, on the connection that `benchdb.store.database` passes."""

from alembic import context

from benchdb.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
