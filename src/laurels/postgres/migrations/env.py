"""Alembic's environment. `postgres/migrate.py` passes the connection."""

from __future__ import annotations

from alembic import context

from laurels.postgres.tables import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table_schema=SCHEMA
)
with context.begin_transaction():
    context.run_migrations()
