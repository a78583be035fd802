"""Create the tables of results, documents, runs, explanations and comparisons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(200), nullable=nullable)


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "results",
        _text("id"),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("precedence", sa.BigInteger, nullable=False),
        _text("digest"),
        sa.Column("stamp", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        _text("status"),
        _text("failure", nullable=True),
        _text("purpose"),
        _text("parent", nullable=True),
        *map(
            _text,
            ("group", "key", "comparison_key", "program", "workload", "title", "label", "loop", "backend", "pool"),
        ),
        _text("tensorflow", nullable=True),
        _text("devbench"),
        sa.Column("processes", sa.Integer, nullable=False),
        sa.Column("step", sa.Float, nullable=True),
        sa.Column("step_low", sa.Float, nullable=True),
        sa.Column("step_high", sa.Float, nullable=True),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("gauges", sa.Text, nullable=False),
        _text("writer"),
        sa.PrimaryKeyConstraint("id", name="pk_results"),
    )
    for columns in (
        ["created", "id"],
        ["purpose", "comparison_key", "created", "id"],
        ["group"],
        ["parent"],
        ["stamp"],
        ["writer", "id"],
    ):
        op.create_index(f"ix_results_{'_'.join(columns)}", "results", columns)
    op.create_table(
        "documents",
        _text("id"),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.ForeignKeyConstraint(["id"], ["results.id"], name="fk_documents", ondelete="CASCADE"),
    )
    op.create_table(
        "runs",
        _text("id"),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("precedence", sa.BigInteger, nullable=False),
        _text("state"),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("last_seen", sa.BigInteger, nullable=False),
        sa.Column("deadline", sa.BigInteger, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_last_seen", "runs", ["last_seen"])
    op.create_table(
        "explanations",
        _text("id"),
        sa.Column("received", sa.BigInteger, nullable=False),
        _text("label"),
        _text("digest"),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_explanations"),
    )
    op.create_index("ix_explanations_received", "explanations", ["received"])
    op.create_table(
        "comparisons",
        _text("baseline"),
        _text("other"),
        sa.Column("threshold", sa.Float, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("baseline", "other", "threshold", name="pk_comparisons"),
    )


def downgrade() -> None:
    """Drop all tables and what they hold."""
    for name in ("comparisons", "explanations", "runs", "documents", "results"):
        op.drop_table(name)
