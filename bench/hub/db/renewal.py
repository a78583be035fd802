"""Rows of results that another devbench made are made anew from their documents, some at a time while the hub serves.

A row is what lists, pages and Prometheus are told of a document, and another version may read more in it, or otherwise.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from sqlalchemy import Connection, and_, select, update
from sqlalchemy.exc import SQLAlchemyError

from bench.hub.db import documents, queries, records
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS
from bench.hub.problems import Problem
from bench.version import __version__

BATCH = 50
"""Rows of one transaction, so that no sender waits for long."""

KEPT = ("received", "body")
"""What does not come from the document, and the document."""


def renew(database: Database, stop: threading.Event) -> int:
    """Makes them anew until none is left, or it is told to stop; returns how many.

    A document that can't be read any more keeps the row that it has.
    """
    count, last = 0, ""
    while not stop.is_set():
        with database.read() as connection:
            others = and_(RESULTS.c.made_by != __version__, RESULTS.c.id > last)
            found = connection.execute(
                select(RESULTS.c.id, RESULTS.c.stamp).where(others).order_by(RESULTS.c.id).limit(BATCH)
            ).all()
            made = [(each, _row(connection, each.id)) for each in found]
        if not found:
            break
        with database.write() as connection:
            for each, row in made:
                unchanged = and_(RESULTS.c.id == each.id, RESULTS.c.stamp == each.stamp)
                if row is not None:
                    count += connection.execute(update(RESULTS).where(unchanged).values(row)).rowcount
        last = found[-1].id
    return count


def keep(database: Database, stop: threading.Event) -> None:
    """Does so once; what a database that does not answer leaves is done at the next start."""
    log = logging.getLogger("devbench.hub")
    try:
        if count := renew(database, stop):
            log.info("made anew, since another devbench had made them: %d rows", count)
    except SQLAlchemyError as error:
        log.error("rows of another devbench stay as they are: %s", error)


def _row(connection: Connection, name: str) -> dict[str, Any] | None:
    try:
        body = queries.body(connection, name)
        made = records.row(documents.result(body), body)
    except (Problem, *documents.FIGURE_ERRORS):
        return None
    return {name: value for name, value in made.items() if name not in KEPT}
