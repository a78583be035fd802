"""Queries of runs: single runs, lists, and the number of runs in each state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, or_, select

from bench.hub.db.paging import ListPage, decode, encode
from bench.hub.db.stored_runs import stored_run
from bench.hub.db.tables import RUNS
from bench.hub.problems import not_found
from bench.model.run_state import RunState


@dataclass(frozen=True)
class StoredRun:
    """A run and what the hub knows about it.

    Args:
        run: its last message.
        state: the state in the message, or `lost` if no message has come for too long.
        last_seen: when the message came, in microseconds since 1970.
    """

    run: RunState
    state: str
    last_seen: int


def run(connection: Connection, id_: str, now: int) -> StoredRun:
    """Return a run.

    Args:
        connection: a connection to the database.
        id_: its id.
        now: the current time in microseconds since 1970.

    Raises:
        Problem: there is no such run.
    """
    row = connection.execute(select(RUNS).where(RUNS.c.id == id_)).one_or_none()
    if row is None:
        raise not_found("run", id_)
    return _stored_run(row, now)


def runs(
    connection: Connection, now: int, limit: int, cursor: str | None = None, prefix: str = ""
) -> ListPage[StoredRun]:
    """Return a page of runs: running ones first, then the others, the last seen first.

    Args:
        connection: a connection to the database.
        now: the current time in microseconds since 1970; running runs whose deadline has passed are lost.
        limit: maximum number of runs.
        cursor: `next` of the previous page.
        prefix: the prefix of their ids. Empty for all runs.

    Raises:
        Problem: the cursor is invalid.
    """
    alive = case((and_(RUNS.c.state == "running", RUNS.c.deadline >= now), 1), else_=0)
    time, id_ = RUNS.c.last_seen, RUNS.c.id
    query = select(RUNS, alive.label("alive")).order_by(alive.desc(), time.desc(), id_).limit(limit + 1)
    if prefix:
        query = query.where(func.substr(id_, 1, len(prefix)) == prefix)
    if cursor is not None:
        last_alive, last_time, last_id = decode(cursor, 3)
        later = and_(alive == last_alive, or_(time < last_time, and_(time == last_time, id_ > last_id)))
        query = query.where(or_(alive < last_alive, later))
    rows = connection.execute(query).all()
    last = rows[limit - 1] if len(rows) > limit else None
    following = encode(last.alive, last.last_seen, last.id) if last is not None else None
    return ListPage([_stored_run(row, now) for row in rows[:limit]], following)


def run_counts(connection: Connection, now: int) -> dict[str, int]:
    """Return the number of runs in each state. Lost runs do not count as running."""
    lost = and_(RUNS.c.state == "running", RUNS.c.deadline < now)
    counts = dict.fromkeys(("running", "lost", "finished", "failed", "interrupted"), 0)
    for state, count in connection.execute(select(RUNS.c.state, func.count()).where(~lost).group_by(RUNS.c.state)):
        counts[state] = count
    counts["lost"] = connection.execute(select(func.count()).select_from(RUNS).where(lost)).scalar_one()
    return counts


def _stored_run(row: Row[Any], now: int) -> StoredRun:
    state = "lost" if row.state == "running" and row.deadline < now else row.state
    return StoredRun(stored_run(row), state, row.last_seen)
