"""Queries by comparison key: the latest run of each key, and the history of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from bench.analyse import changepoints
from bench.hub.db.result_queries import LISTED
from bench.hub.db.tables import RESULTS
from bench.hub.problems import not_found

HISTORY = 2_000
"""Maximum number of results in a history."""


def latest(
    connection: Connection, *columns: Any, where: Sequence[ColumnElement[bool]] = (), limit: int | None = None
) -> list[Row[Any]]:
    """Return the latest run of each comparison key, newest first.

    The points of sweeps and the levels of explanations and scaling studies do not count.

    Args:
        connection: a connection to the database.
        columns: columns to read besides `comparison_key` and `id`.
        where: conditions on the runs.
        limit: maximum number of comparison keys.
    """
    newest = (
        select(RESULTS.c.comparison_key, func.max(RESULTS.c.created).label("created"))
        .where(RESULTS.c.purpose == "run", *where)
        .group_by(RESULTS.c.comparison_key)
        .subquery()
    )
    same = and_(
        RESULTS.c.comparison_key == newest.c.comparison_key,
        RESULTS.c.created == newest.c.created,
        RESULTS.c.purpose == "run",
        *where,
    )
    query = (
        select(RESULTS.c.comparison_key, RESULTS.c.id, *columns)
        .join(newest, same)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
    )
    newest_rows: dict[str, Row[Any]] = {}
    for row in connection.execute(query):
        if limit is not None and len(newest_rows) >= limit:
            break
        newest_rows.setdefault(row.comparison_key, row)
    return list(newest_rows.values())


def history(connection: Connection, comparison_key: str) -> tuple[list[Row[Any]], bool]:
    """Return the newest runs of a comparison key, oldest first, and whether there are older ones.

    Raises:
        Problem: there are no runs of this key.
    """
    query = (
        select(*LISTED)
        .where(RESULTS.c.purpose == "run", RESULTS.c.comparison_key == comparison_key)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
        .limit(HISTORY + 1)
    )
    rows = list(connection.execute(query))
    if not rows:
        raise not_found("comparison key", comparison_key)
    return rows[:HISTORY][::-1], len(rows) > HISTORY


def change_points(rows: Sequence[Row[Any]], threshold: float) -> list[int]:
    """Return the indexes in a history at which the step time changed.

    Args:
        rows: results, oldest first; those without a step time are skipped.
        threshold: smallest relative difference that matters.
    """
    timed = [index for index, row in enumerate(rows) if row.step is not None and row.step > 0]
    return [timed[index] for index in changepoints.change_points([rows[index].step for index in timed], threshold)]
