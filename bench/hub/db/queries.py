"""Queries: lists by filter and page, single documents, the history of a comparison key, the latest of each."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Row, and_, case, func, or_, select

from bench.analyse import changepoints
from bench.hub.db import documents, records
from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem, not_found
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.run_state import RunState

LISTED = [column for column in RESULTS.c if column.name not in ("header", "gauges")]
"""The columns that a list reads: all but the large ones."""

HISTORY = 2_000
"""Maximum number of results in a history."""

CHOICES = 500
"""Maximum number of values that a filter offers."""

T = TypeVar("T")


class Filters(BaseModel):
    """The parameters of a list of results."""

    model_config = ConfigDict(extra="forbid")

    workload: str | None = None
    title: str | None = None
    backend: str | None = None
    pool: str | None = None
    loop: str | None = None
    status: str | None = None
    purpose: str | None = None
    series: str | None = Field(None, description="Comparison key: the spec and where it ran.")
    key: str | None = Field(None, description="Hash of the spec.")
    group: str | None = Field(None, description="Results that were measured together, interleaved.")
    parent: str | None = Field(None, description="Results of one sweep or explanation.")
    limit: int = Field(50, ge=1, le=500, description="Results per page.")
    cursor: str | None = Field(None, max_length=400, description="`next` of the previous page.")

    def columns(self) -> dict[str, str]:
        """Return the columns to filter by, and their values."""
        given = self.model_dump(exclude={"limit", "cursor"})
        return {name: records.short(value) for name, value in given.items() if value}


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list.

    Args:
        items: of the list.
        next: cursor of the next page; None if this is the last one.
    """

    items: Sequence[T]
    next: str | None


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


def results(connection: Connection, filters: dict[str, str], limit: int, cursor: str | None = None) -> Page[Row[Any]]:
    """Return a page of results, newest first.

    Args:
        connection: to the database.
        filters: columns and their values.
        limit: maximum number of results.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    query = select(*LISTED).order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc()).limit(limit + 1)
    for name, value in filters.items():
        query = query.where(RESULTS.c[name] == value)
    if cursor is not None:
        created, last_id = _decode(cursor, 2)
        earlier, same_time = RESULTS.c.created < created, RESULTS.c.created == created
        query = query.where(or_(earlier, and_(same_time, RESULTS.c.id < last_id)))
    rows = connection.execute(query).all()
    following = _encode(rows[limit - 1].created, rows[limit - 1].id) if len(rows) > limit else None
    return Page(rows[:limit], following)


def result_body(connection: Connection, id_: str) -> bytes:
    """Return a result's document as it was sent.

    Raises:
        Problem: there is no such result.
    """
    body = connection.execute(select(DOCUMENTS.c.body).where(DOCUMENTS.c.id == id_)).scalar()
    if body is None:
        raise not_found("result", id_)
    return zlib.decompress(body)


def result(connection: Connection, id_: str) -> Result:
    """Return a result.

    Raises:
        Problem: there is no such result, or it has another schema version.
    """
    return documents.stored(result_body(connection, id_), Result)


def result_row(connection: Connection, id_: str) -> Row[Any]:
    """Return the columns `LISTED` of a result.

    Raises:
        Problem: there is no such result.
    """
    row = connection.execute(select(*LISTED).where(RESULTS.c.id == id_)).one_or_none()
    if row is None:
        raise not_found("result", id_)
    return row


def results_by_id(connection: Connection, ids: Sequence[str]) -> list[Row[Any]]:
    """Return the results with these ids that the hub has, oldest first."""
    query = select(*LISTED).where(RESULTS.c.id.in_(ids)).order_by(RESULTS.c.created, RESULTS.c.id)
    return list(connection.execute(query))


def related(connection: Connection, column: str, value: str, limit: int) -> list[Row[Any]]:
    """Return results of one group or one parent, oldest first.

    Args:
        connection: to the database.
        column: `group` or `parent`.
        value: the value of the column.
        limit: maximum number of results.
    """
    query = select(*LISTED).where(RESULTS.c[column] == value).order_by(RESULTS.c.created, RESULTS.c.id).limit(limit)
    return list(connection.execute(query))


def latest(connection: Connection, *columns: Any, limit: int | None = None) -> list[Row[Any]]:
    """Return the latest run of each comparison key, newest first. Sweeps' points and explanations' levels do not count.

    Args:
        connection: to the database.
        columns: to read beside `series` and `id`.
        limit: maximum number of results.
    """
    newest = (
        select(RESULTS.c.series, func.max(RESULTS.c.created).label("created"))
        .where(RESULTS.c.purpose == "run")
        .group_by(RESULTS.c.series)
        .subquery()
    )
    same = and_(RESULTS.c.series == newest.c.series, RESULTS.c.created == newest.c.created, RESULTS.c.purpose == "run")
    query = (
        select(RESULTS.c.series, RESULTS.c.id, *columns)
        .join(newest, same)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
    )
    found: dict[str, Row[Any]] = {}
    for row in connection.execute(query):
        if limit is not None and len(found) >= limit:
            break
        found.setdefault(row.series, row)
    return list(found.values())


def history(connection: Connection, series: str) -> tuple[list[Row[Any]], bool]:
    """Return the newest runs of a comparison key, oldest first, and whether there are older ones.

    Raises:
        Problem: there are no runs of this key.
    """
    query = (
        select(*LISTED)
        .where(RESULTS.c.purpose == "run", RESULTS.c.series == series)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
        .limit(HISTORY + 1)
    )
    rows = list(connection.execute(query))
    if not rows:
        raise not_found("comparison key", series)
    return rows[:HISTORY][::-1], len(rows) > HISTORY


def change_points(rows: Sequence[Row[Any]], threshold: float) -> list[int]:
    """Return the indexes in a history at which the step time changed.

    Args:
        rows: results, oldest first; those without a step time are skipped.
        threshold: smallest relative difference that matters.
    """
    timed = [index for index, row in enumerate(rows) if row.step is not None and row.step > 0]
    return [timed[index] for index in changepoints.change_points([rows[index].step for index in timed], threshold)]


def filter_choices(connection: Connection) -> dict[str, list[str]]:
    """Return the values that the filters of the results page offer."""
    choices = {}
    for name in ("title", "backend", "pool", "status"):
        column = RESULTS.c[name]
        query = select(column).distinct().order_by(column).limit(CHOICES)
        choices[name] = [value for (value,) in connection.execute(query)]
    return choices


def version(connection: Connection) -> tuple[int, int]:
    """Return two numbers that differ after any change of the results."""
    count, total = connection.execute(select(func.count(), func.sum(RESULTS.c.stamp)).select_from(RESULTS)).one()
    return int(count), int(total or 0)


def explanation(connection: Connection, id_: str) -> Explanation:
    """Return an explanation.

    Raises:
        Problem: there is no such explanation, or it has another schema version.
    """
    document = connection.execute(select(EXPLANATIONS.c.document).where(EXPLANATIONS.c.id == id_)).scalar()
    if document is None:
        raise not_found("explanation", id_)
    return documents.stored(document, Explanation)


def explanations(connection: Connection, limit: int, cursor: str | None = None) -> Page[Row[Any]]:
    """Return ids, labels and times of receipt of a page of explanations, newest first.

    Args:
        connection: to the database.
        limit: maximum number of explanations.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    time, id_ = EXPLANATIONS.c.received, EXPLANATIONS.c.id
    query = select(id_, EXPLANATIONS.c.label, time).order_by(time.desc(), id_).limit(limit + 1)
    if cursor is not None:
        last_time, last_id = _decode(cursor, 2)
        query = query.where(or_(time < last_time, and_(time == last_time, id_ > last_id)))
    rows = list[Row[Any]](connection.execute(query))
    following = _encode(rows[limit - 1].received, rows[limit - 1].id) if len(rows) > limit else None
    return Page(rows[:limit], following)


def run(connection: Connection, id_: str, now: int) -> StoredRun:
    """Return a run.

    Args:
        connection: to the database.
        id_: its id.
        now: the current time in microseconds since 1970.

    Raises:
        Problem: there is no such run.
    """
    row = connection.execute(select(RUNS).where(RUNS.c.id == id_)).one_or_none()
    if row is None:
        raise not_found("run", id_)
    return _stored_run(row, now)


def runs(connection: Connection, now: int, limit: int, cursor: str | None = None, prefix: str = "") -> Page[StoredRun]:
    """Return a page of runs: running ones first, then the others, the last seen first.

    Args:
        connection: to the database.
        now: the current time in microseconds since 1970; running runs whose deadline has passed are lost.
        limit: maximum number of runs.
        cursor: `next` of the previous page.
        prefix: of their ids.

    Raises:
        Problem: the cursor is invalid.
    """
    alive = case((and_(RUNS.c.state == "running", RUNS.c.deadline >= now), 1), else_=0)
    time, id_ = RUNS.c.last_seen, RUNS.c.id
    query = select(RUNS, alive.label("alive")).order_by(alive.desc(), time.desc(), id_).limit(limit + 1)
    if prefix:
        query = query.where(func.substr(id_, 1, len(prefix)) == prefix)
    if cursor is not None:
        last_alive, last_time, last_id = _decode(cursor, 3)
        later = and_(alive == last_alive, or_(time < last_time, and_(time == last_time, id_ > last_id)))
        query = query.where(or_(alive < last_alive, later))
    rows = connection.execute(query).all()
    last = rows[limit - 1] if len(rows) > limit else None
    following = _encode(last.alive, last.last_seen, last.id) if last is not None else None
    return Page([_stored_run(row, now) for row in rows[:limit]], following)


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
    return StoredRun(documents.stored(row.document, RunState), state, row.last_seen)


def _encode(*position: Any) -> str:
    return base64.urlsafe_b64encode(" ".join(map(str, position)).encode()).decode().rstrip("=")


def _decode(cursor: str, count: int) -> tuple[Any, ...]:
    """Return the `count` parts of a cursor: whole numbers and, last, an id."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        *digits, id_ = text.split(" ", count - 1)
        numbers = [int(part) for part in digits]
    except (binascii.Error, ValueError):
        numbers, id_ = [], ""
    if not id_.isprintable() or not id_ or len(numbers) < count - 1 or not all(0 <= n < 2**63 for n in numbers):
        raise Problem(400, "invalid-cursor", "the cursor is invalid", "Use `next` of the previous page.")
    return *numbers, id_
