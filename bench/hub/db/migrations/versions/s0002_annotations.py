"""Add tags, note and silence to results, and create the table of deleted results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ANNOTATIONS = ("tags", "note", "silenced")


def upgrade() -> None:
    """Add the columns and the table."""
    for name in ("tags", "note"):
        op.add_column("results", sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.add_column("results", sa.Column("silenced", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "deleted",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("precedence", sa.BigInteger, nullable=False),
        sa.Column("deleted", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted"),
    )


def downgrade() -> None:
    """Drop the columns and the table, and what they hold."""
    op.drop_table("deleted")
    for name in ANNOTATIONS:
        op.drop_column("results", name)
