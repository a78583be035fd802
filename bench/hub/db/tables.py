"""The hub's tables. A migration in `migrations/versions` makes each; a test holds the two to each other.

Times are whole microseconds since 1970 in UTC. A result's document lies apart from what lists are made of, so that a
list reads little. Texts are short and printable (`records.short`), so that any of them can be indexed.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s",
    }
)

NAME = 200
"""Characters of a short text, at most."""


def _text(name: str, **given: bool) -> Column[str]:
    return Column(name, String(NAME), nullable=given.get("nullable", False), primary_key=given.get("key", False))


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
    _text("series"),
    _text("work"),
    _text("workload"),
    _text("title"),
    _text("label"),
    _text("loop"),
    _text("backend"),
    _text("pool"),
    _text("tensorflow", nullable=True),
    _text("devbench"),
    Column("processes", Integer, nullable=False),
    Column("step", Float, nullable=True),
    Column("step_low", Float, nullable=True),
    Column("step_high", Float, nullable=True),
    Column("head", Text, nullable=False),
    Column("gauges", Text, nullable=False),
    Column("made_by", String(NAME), nullable=False, server_default=""),
    Index(None, "created", "id"),
    Index(None, "purpose", "series", "created", "id"),
    Index(None, "group"),
    Index(None, "parent"),
    Index(None, "stamp"),
    Index(None, "made_by", "id"),
)
"""One row a result. `series` is its comparison key, `work` the same without where it ran; `stamp` is another random
number after each change, so that the sum of all of them tells whether anything changed. `head` is the document
without its samples, `gauges` what Prometheus is told of it, `made_by` the devbench that made the row from it."""

DOCUMENTS = Table(
    "documents",
    METADATA,
    Column("id", ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""Each result as it was sent, compressed by zlib."""

RUNS = Table(
    "runs",
    METADATA,
    _text("id", key=True),
    Column("attempt", BigInteger, nullable=False),
    Column("precedence", BigInteger, nullable=False),
    _text("state"),
    Column("started", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "seen"),
)
"""One row a run: what it said last and when; it is lost once `due` is over."""

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

VERDICTS = Table(
    "verdicts",
    METADATA,
    _text("base", key=True),
    _text("other", key=True),
    Column("threshold", Float, primary_key=True),
    Column("document", Text, nullable=False),
)
"""Comparisons that were made once, by the digests of the two documents: a store of work, not of facts."""
