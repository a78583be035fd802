"""Alembic's environment: run the missing migrations on the connection that `Database.upgrade` passes."""

from __future__ import annotations

from alembic import context

from bench.hub.db.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transaction_per_migration=False,
)
context.run_migrations()
