"""Runs the migrations for Alembic, on the connection that `benchdb.store.database` passes."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
