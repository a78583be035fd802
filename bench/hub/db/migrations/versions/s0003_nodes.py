"""Add the node to results. The hub reads it from the documents while it serves (`renewal`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, and mark each row as outdated."""
    op.add_column("results", sa.Column("node", sa.String(200), nullable=True))
    op.execute("UPDATE results SET writer = ''")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("results", "node")
