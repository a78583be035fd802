"""Names of results in lists and titles: what ran, and what was varied between the results that are shown together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import result_queries
from bench.model.spec import Spec
from bench.render import labels

BATCH = 500
"""Values in one query."""


def names(connection: Connection, rows: Sequence[Any], texts: Sequence[str] = ()) -> list[str]:
    """Return a name for each row, such as "cifar on cpu, fit, batch 64" if the batch differs between the rows.

    Args:
        connection: a connection to the database.
        rows: rows with the columns `id`, `key`, `label`, `purpose` and `pool`.
        texts: texts to use instead of the labels. Empty to use the labels.
    """
    shown = texts or [row.label for row in rows]
    listed = [labels.Listed(text, row.purpose, row.key, row.pool) for text, row in zip(shown, rows, strict=True)]
    wanted = labels.ambiguous(listed)
    return labels.names(listed, _specs(connection, {row.key: row.id for row in rows if row.key in wanted}))


def _specs(connection: Connection, id_of: Mapping[str, str]) -> dict[str, Spec]:
    """Return the spec of each key, from one of its results. Results of another schema version are left out."""
    ids = list(id_of.values())
    batches = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
    return {result.key: result.spec for batch in batches for result in result_queries.headers(connection, batch)}
