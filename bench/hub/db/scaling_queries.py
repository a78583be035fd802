"""Queries of scaling studies: the levels of one, and the latest studies of a program with any number of workers.

In a cluster, each number of workers is measured by a Job of its own, which is a study of its own.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from bench.hub.db import comparison_keys, result_queries
from bench.hub.db.tables import RESULTS
from bench.model.spec import Spec

PURPOSES = ("run", "scale")
"""Purposes of the results of a scaling study: the runs, one for each number of workers, and the other levels."""

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
    """Return the results of a study, oldest first; none if there is no such study."""
    members = result_queries.related(connection, "parent", study, LEVELS)
    return [row for row in members if row.purpose in PURPOSES]


def latest_studies(connection: Connection, row: Any) -> dict[int, str]:
    """Return the latest study of each number of workers of a program in a pool, by rising number of workers.

    Args:
        connection: to the database.
        row: any run of the program in the pool. The others differ from it in the number of workers only.
    """
    same = [RESULTS.c[name] == getattr(row, name) for name in ("title", "backend", "loop", "pool")]
    rows = comparison_keys.latest(
        connection, RESULTS.c.parent, where=[*same, RESULTS.c.parent.is_not(None)], limit=KEYS
    )
    specs = {result.id: result.spec for result in result_queries.headers(connection, [row.id, *(r.id for r in rows)])}
    program = _program(specs[row.id]) if row.id in specs else None
    studies: dict[int, str] = {}
    for candidate in rows:  # the newest come first
        spec = specs.get(candidate.id)
        if program is not None and spec is not None and spec.workers is not None and _program(spec) == program:
            studies.setdefault(spec.workers.count, candidate.parent)
    return dict(sorted(studies.items())[:STUDIES])


def _program(spec: Spec) -> str | None:
    """Return what names a program, whatever the number of its workers; None if it has no workers."""
    if spec.workers is None:
        return None
    return spec.model_copy(update={"workers": spec.workers.model_copy(update={"count": 1})}).program_key
