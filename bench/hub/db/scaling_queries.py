"""Queries of scaling studies: the levels of one, and the latest studies of a program with any number of workers.

In a cluster, each number of workers is measured by a Job of its own, which is a study of its own.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from bench.hub.db import comparison_keys, result_queries
from bench.hub.db.scaling_key import scaling_key
from bench.hub.db.tables import RESULTS

PURPOSES = ("run", "scale")
"""Purposes of the results of a scaling study: "run" for the run of each number of workers, "scale" for other levels."""

LEVELS = 60
"""Maximum number of results of a study that are read."""

STUDIES = 12
"""Maximum number of studies that are read for one curve."""

KEYS = 200
"""Maximum number of comparison keys that are searched for other numbers of workers."""


def is_size(row: Any) -> bool:
    """Return whether a result is the run of one number of workers of a scaling study."""
    return row.purpose == "run" and row.parent is not None


def levels(connection: Connection, study: str) -> list[Row[Any]]:
    """Return the results of a study, oldest first. Empty if there is no such study."""
    members = result_queries.related(connection, "parent", study, LEVELS)
    return [row for row in members if row.purpose in PURPOSES]


def latest_studies(connection: Connection, row: Any) -> dict[int, str]:
    """Return the latest study of each number of workers of a program in a pool, by rising number of workers.

    Args:
        connection: a connection to the database.
        row: any run of the program in the pool. The others differ from it in the number of workers only. One worker
            belongs to both kinds of scaling.
    """
    same = [RESULTS.c[name] == getattr(row, name) for name in ("title", "backend", "loop", "pool")]
    rows = comparison_keys.latest(
        connection, RESULTS.c.parent, where=[*same, RESULTS.c.parent.is_not(None)], limit=KEYS
    )
    specs = {result.id: result.spec for result in result_queries.headers(connection, [row.id, *(r.id for r in rows)])}
    if row.id not in specs:
        return {}
    program = scaling_key(specs[row.id])
    same_program = [found for found in rows if found.id in specs and scaling_key(specs[found.id]) == program]
    own_study = [specs[row.id], *(specs[found.id] for found in same_program if found.parent == row.parent)]
    scaling = next((spec.workers.scaling for spec in own_study if spec.workers and spec.workers.count > 1), "strong")
    studies: dict[int, str] = {}
    for found in same_program:  # the newest come first
        workers = specs[found.id].workers
        if workers is not None and (workers.count == 1 or workers.scaling == scaling):
            studies.setdefault(workers.count, found.parent)
    return dict(sorted(studies.items())[:STUDIES])
