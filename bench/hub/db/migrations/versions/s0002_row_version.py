"""The devbench that made a result's row; of older rows it is not known, so they are made anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the column, and an index that finds the rows of others without reading any."""
    op.add_column("results", sa.Column("made_by", sa.String(200), nullable=False, server_default=""))
    op.create_index("ix_results_made_by_id", "results", ["made_by", "id"])


def downgrade() -> None:
    """Removes both."""
    op.drop_index("ix_results_made_by_id", "results")
    op.drop_column("results", "made_by")
