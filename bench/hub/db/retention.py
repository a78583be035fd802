"""Retention: results that are too old or too many are removed, the oldest first, at the start and every hour.

Explanations and ended runs that are too old are removed too. If the number of results is limited, those that are older
than the oldest remaining result are removed.

The age counts from when the hub received a document, by the hub's clock. A sender's clock has no influence.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from sqlalchemy import delete, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from bench.config.hub_settings import HubSettings
from bench.hub.db import comparisons, records, writes
from bench.hub.db.database import Database
from bench.hub.db.tables import DELETED, EXPLANATIONS, RESULTS, RUNS

INTERVAL = 3600
"""Seconds between two removals."""

DAY = 86_400 * 1_000_000
"""Microseconds."""

BATCH = 500
"""Rows per transaction. Small, so that no sender waits for long."""


@dataclass(frozen=True)
class Removed:
    """The number of removed documents of each kind."""

    results: int
    runs: int
    explanations: int


def prune(database: Database, settings: HubSettings, now: int | None = None) -> Removed:
    """Remove what `keep_days` and `keep_results` do not keep.

    Args:
        database: where to remove it.
        settings: what to keep.
        now: microseconds since 1970. Default: the current time.
    """
    time = records.now() if now is None else now
    oldest = None if settings.keep_days is None else time - int(settings.keep_days * DAY)
    results = 0
    while stamps := _surplus(database, settings, oldest):
        with database.write() as connection:
            results += writes.remove_results(connection, stamps)
    runs = explanations = 0
    oldest = max(filter(None, (oldest, _oldest_kept(database, settings))), default=None)
    if oldest is not None:
        with database.write() as connection:
            ended = or_(RUNS.c.state != "running", RUNS.c.deadline < time)
            runs = connection.execute(delete(RUNS).where(RUNS.c.last_seen < oldest, ended)).rowcount
            explanations = connection.execute(delete(EXPLANATIONS).where(EXPLANATIONS.c.received < oldest)).rowcount
            connection.execute(delete(DELETED).where(DELETED.c.deleted < oldest))
    if results:
        comparisons.remove_stale(database)
    return Removed(results, runs, explanations)


def run(database: Database, settings: HubSettings, stop: threading.Event) -> None:
    """Prune now and every hour until `stop` is set. If the database fails, try again an hour later."""
    if settings.keep_days is None and settings.keep_results is None:
        return
    log = logging.getLogger("devbench.hub")
    while True:
        try:
            removed = prune(database, settings)
            if removed != Removed(0, 0, 0):
                log.info(
                    "retention removed %d results, %d runs and %d explanations",
                    removed.results,
                    removed.runs,
                    removed.explanations,
                )
        except SQLAlchemyError as error:
            log.error("retention failed: %s", error)
        if stop.wait(INTERVAL):
            return


def _oldest_kept(database: Database, settings: HubSettings) -> int | None:
    """Return when the oldest result arrived. None if the number of results is not limited, or below the limit."""
    if settings.keep_results is None:
        return None
    with database.read() as connection:
        count, first = connection.execute(select(func.count(), func.min(RESULTS.c.received))).one()
    return first if count >= settings.keep_results else None


def _surplus(database: Database, settings: HubSettings, oldest: int | None) -> list[tuple[str, int]]:
    """Return id and stamp of some results to remove, the oldest first."""
    with database.read() as connection:
        query = select(RESULTS.c.id, RESULTS.c.stamp).order_by(RESULTS.c.received, RESULTS.c.id).limit(BATCH)
        if oldest is not None:
            rows = connection.execute(query.where(RESULTS.c.received < oldest)).all()
            if rows:
                return [(row.id, row.stamp) for row in rows]
        if settings.keep_results is None:
            return []
        count = connection.execute(select(func.count()).select_from(RESULTS)).scalar_one()
        surplus = min(BATCH, count - settings.keep_results)
        return [(row.id, row.stamp) for row in connection.execute(query.limit(surplus))] if surplus > 0 else []
