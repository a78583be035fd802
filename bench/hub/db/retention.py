"""Retention: what is too old or too much is removed, the oldest first, every hour and when the hub starts.

Of too many results the oldest go, and with them the explanations and ended runs that are older than the oldest left.
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
from bench.hub.db.tables import EXPLANATIONS, RESULTS, RUNS

EVERY = 3600
"""Seconds."""

DAY = 86_400 * 1_000_000
"""Microseconds."""

BATCH = 500
"""Rows of one transaction, so that no sender waits for long."""


@dataclass(frozen=True)
class Removed:
    """How much was removed."""

    results: int
    runs: int
    explanations: int


def prune(database: Database, settings: HubSettings, now: int | None = None) -> Removed:
    """Removes what `keep_days` and `keep_results` don't keep.

    Args:
        database: from where.
        settings: what is kept.
        now: microseconds since 1970, in place of the clock's.
    """
    at = records.now() if now is None else now
    oldest = None if settings.keep_days is None else at - int(settings.keep_days * DAY)
    results = 0
    while found := _too_many(database, settings, oldest):
        with database.write() as connection:
            results += writes.remove_results(connection, found)
    runs = explanations = 0
    oldest = max(filter(None, (oldest, _oldest_of_many(database, settings))), default=None)
    if oldest is not None:
        with database.write() as connection:
            ended = or_(RUNS.c.state != "running", RUNS.c.due < at)
            runs = connection.execute(delete(RUNS).where(RUNS.c.seen < oldest, ended)).rowcount
            explanations = connection.execute(delete(EXPLANATIONS).where(EXPLANATIONS.c.received < oldest)).rowcount
    if results:
        comparisons.forget(database)
    return Removed(results, runs, explanations)


def keep(database: Database, settings: HubSettings, stop: threading.Event) -> None:
    """Prunes now and every hour until it is told to stop; a database that does not answer is asked again then."""
    if settings.keep_days is None and settings.keep_results is None:
        return
    log = logging.getLogger("devbench.hub")
    while True:
        try:
            removed = prune(database, settings)
            if removed != Removed(0, 0, 0):
                log.info("removed: %s", removed)
        except SQLAlchemyError as error:
            log.error("nothing could be removed: %s", error)
        if stop.wait(EVERY):
            return


def _oldest_of_many(database: Database, settings: HubSettings) -> int | None:
    """When the oldest result came, where there are as many as are kept."""
    if settings.keep_results is None:
        return None
    with database.read() as connection:
        count, first = connection.execute(select(func.count(), func.min(RESULTS.c.received))).one()
    return first if count >= settings.keep_results else None


def _too_many(database: Database, settings: HubSettings, oldest: int | None) -> list[tuple[str, int]]:
    """Ids and stamps of some results that are not to be kept, the oldest first."""
    with database.read() as connection:
        chosen = select(RESULTS.c.id, RESULTS.c.stamp).order_by(RESULTS.c.received, RESULTS.c.id).limit(BATCH)
        if oldest is not None:
            found = connection.execute(chosen.where(RESULTS.c.received < oldest)).all()
            if found:
                return [(row.id, row.stamp) for row in found]
        if settings.keep_results is None:
            return []
        count = connection.execute(select(func.count()).select_from(RESULTS)).scalar_one()
        over = min(BATCH, count - settings.keep_results)
        return [(row.id, row.stamp) for row in connection.execute(chosen.limit(over))] if over > 0 else []
