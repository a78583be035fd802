"""The hub's tables. The migrations in `migrations/versions` create them; a test compares the two.

Times are whole microseconds since 1970, UTC. A result's document is stored apart from its row, so that lists read
little. Texts are short and printable (`records.short`), so that all of them can be indexed.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    false,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s",
    }
)

SHORT = 200
"""Maximum length of a short text, in characters."""


def _text(name: str, **options: bool) -> Column[str]:
    return Column(name, String(SHORT), nullable=options.get("nullable", False), primary_key=options.get("key", False))


RESULTS = Table(
    "results",
    METADATA,
    _text("id", key=True),
    Column("attempt", BigInteger, nullable=False),
    Column("precedence", BigInteger, nullable=False),
    _text("digest"),
    Column("stamp", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    _text("status"),
    _text("failure", nullable=True),
    _text("purpose"),
    _text("parent", nullable=True),
    _text("group"),
    _text("key"),
    _text("comparison_key"),
    _text("program"),
    _text("workload"),
    _text("title"),
    _text("label"),
    _text("loop"),
    _text("backend"),
    _text("pool"),
    _text("node", nullable=True),
    _text("tensorflow", nullable=True),
    _text("devbench"),
    Column("processes", Integer, nullable=False),
    Column("step", Float, nullable=True),
    Column("step_low", Float, nullable=True),
    Column("step_high", Float, nullable=True),
    Column("header", Text, nullable=False),
    Column("gauges", Text, nullable=False),
    _text("writer"),
    Column("tags", Text, nullable=False, server_default=""),
    Column("note", Text, nullable=False, server_default=""),
    Column("silenced", Boolean, nullable=False, server_default=false()),
    Index(None, "created", "id"),
    Index(None, "purpose", "comparison_key", "created", "id"),
    Index(None, "group"),
    Index(None, "parent"),
    Index(None, "stamp"),
    Index(None, "writer", "id"),
)
"""One row per result.

`comparison_key` identifies the spec and where it ran, `program` the same without where it ran. `stamp` is a new random
number after each change, so the sum of all stamps shows whether any result has changed. `header` is the document
without its samples. `gauges` holds its Prometheus lines. `writer` is the version of devbench that wrote the row.
`tags`, `note` and `silenced` are what people added (`edits`). Each tag has a space before and after it.
"""

DOCUMENTS = Table(
    "documents",
    METADATA,
    Column("id", ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""Each result as it was sent, compressed with zlib."""

DELETED = Table(
    "deleted",
    METADATA,
    _text("id", key=True),
    Column("precedence", BigInteger, nullable=False),
    Column("deleted", BigInteger, nullable=False),
)
"""One row per result that somebody deleted: the precedence of its last state, and when it was deleted."""

RUNS = Table(
    "runs",
    METADATA,
    _text("id", key=True),
    Column("attempt", BigInteger, nullable=False),
    Column("precedence", BigInteger, nullable=False),
    _text("state"),
    Column("started", BigInteger, nullable=False),
    Column("last_seen", BigInteger, nullable=False),
    Column("deadline", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "last_seen"),
)
"""One row per run: its last message and when it came. A running run is lost once its `deadline` has passed."""

EXPLANATIONS = Table(
    "explanations",
    METADATA,
    _text("id", key=True),
    Column("received", BigInteger, nullable=False),
    _text("label"),
    _text("digest"),
    Column("document", Text, nullable=False),
    Index(None, "received"),
)

COMPARISONS = Table(
    "comparisons",
    METADATA,
    _text("baseline", key=True),
    _text("other", key=True),
    Column("threshold", Float, primary_key=True),
    Column("document", Text, nullable=False),
)
"""A cache of comparisons, by the digests of the two documents."""
