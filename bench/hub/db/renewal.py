"""Renewal: rows that another version of devbench wrote are computed again from their documents.

A row is what lists, pages and Prometheus show of a document. Another version may read more from it, or read it
differently. The hub renews rows in small batches while it serves.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from sqlalchemy import Connection, and_, select, update
from sqlalchemy.exc import SQLAlchemyError

from bench.hub.db import documents, records, result_queries
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS
from bench.hub.problems import Problem
from bench.version import __version__

BATCH = 50
"""Rows per transaction. Small, so that no sender waits for long."""

UNCHANGED = ("received", "body")
"""What is not computed from the document."""


def renew(database: Database, stop: threading.Event) -> int:
    """Renew rows until none is left or `stop` is set; return how many were renewed.

    A row whose document this version cannot read stays as it is.
    """
    count, last_id = 0, ""
    while not stop.is_set():
        with database.read() as connection:
            outdated = and_(RESULTS.c.writer != __version__, RESULTS.c.id > last_id)
            batch = connection.execute(
                select(RESULTS.c.id, RESULTS.c.stamp).where(outdated).order_by(RESULTS.c.id).limit(BATCH)
            ).all()
            new_rows = [(old, _row(connection, old.id)) for old in batch]
        if not batch:
            break
        with database.write() as connection:
            for old, new_row in new_rows:
                unchanged = and_(RESULTS.c.id == old.id, RESULTS.c.stamp == old.stamp)
                if new_row is not None:
                    count += connection.execute(update(RESULTS).where(unchanged).values(new_row)).rowcount
        last_id = batch[-1].id
    return count


def run(database: Database, stop: threading.Event) -> None:
    """Renew all rows once. If the database fails, the next start of the hub renews the rest."""
    log = logging.getLogger("devbench.hub")
    try:
        if count := renew(database, stop):
            log.info("renewed %d rows that another version of devbench wrote", count)
    except SQLAlchemyError as error:
        log.error("cannot renew the rows of another version of devbench: %s", error)


def _row(connection: Connection, id_: str) -> dict[str, Any] | None:
    try:
        body = result_queries.result_body(connection, id_)
        row = records.row(documents.result(body, long_texts=True), body)
    except (Problem, *documents.FIGURE_ERRORS):
        return None
    return {name: value for name, value in row.items() if name not in UNCHANGED}
