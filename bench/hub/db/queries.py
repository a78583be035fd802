"""What is asked of the database: lists by filters and page, one document, a series' history, the latest of each."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Row, and_, case, func, or_, select

from bench.analyse import changepoints
from bench.hub.db import records
from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem, absent
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.run_state import RunState

HEAVY = ("head", "gauges")
LISTED = [column for column in RESULTS.c if column.name not in HEAVY]
"""What a list reads of each result."""

HISTORY = 2_000
"""Points of one history, the newest."""


class Filters(BaseModel):
    """What a list of results can be asked for."""

    model_config = ConfigDict(extra="forbid")

    workload: str | None = None
    title: str | None = None
    backend: str | None = None
    pool: str | None = None
    loop: str | None = None
    status: str | None = None
    purpose: str | None = None
    series: str | None = None
    key: str | None = None
    group: str | None = Field(None, description="results whose workers took turns")
    parent: str | None = Field(None, description="results of one sweep or explanation")
    limit: int = Field(50, ge=1, le=500, description="results a page")
    cursor: str | None = Field(None, max_length=400, description="where the page before ended")

    def chosen(self) -> dict[str, str]:
        """Column: value, of those that were given."""
        given = self.model_dump(exclude={"limit", "cursor"})
        return {name: records.short(value) for name, value in given.items() if value}


@dataclass(frozen=True)
class Page:
    """A part of a list, newest first.

    Args:
        rows: of `tables.RESULTS`, without what is heavy.
        older: cursor of the next page; none where this is the last.
    """

    rows: Sequence[Row[Any]]
    older: str | None


def page(connection: Connection, filters: dict[str, str], limit: int, cursor: str | None = None) -> Page:
    """A page of results, newest first.

    Raises:
        Problem: the cursor is none of ours.
    """
    chosen = select(*LISTED).order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc()).limit(limit + 1)
    for name, value in filters.items():
        chosen = chosen.where(RESULTS.c[name] == value)
    if cursor is not None:
        created, name = _place(cursor, 2)
        earlier, same = RESULTS.c.created < created, RESULTS.c.created == created
        chosen = chosen.where(or_(earlier, and_(same, RESULTS.c.id < name)))
    rows = connection.execute(chosen).all()
    older = _cursor(rows[limit - 1].created, rows[limit - 1].id) if len(rows) > limit else None
    return Page(rows[:limit], older)


def body(connection: Connection, name: str) -> bytes:
    """A result's document as it was sent.

    Raises:
        Problem: there is none.
    """
    found = connection.execute(select(DOCUMENTS.c.body).where(DOCUMENTS.c.id == name)).scalar()
    if found is None:
        raise absent("result", name)
    return zlib.decompress(found)


def result(connection: Connection, name: str) -> Result:
    """A result, whole.

    Raises:
        Problem: there is none.
    """
    return Result.model_validate_json(body(connection, name))


def row(connection: Connection, name: str) -> Row[Any]:
    """A result's row, without what is heavy.

    Raises:
        Problem: there is none.
    """
    found = connection.execute(select(*LISTED).where(RESULTS.c.id == name)).one_or_none()
    if found is None:
        raise absent("result", name)
    return found


def latest(connection: Connection, *columns: Any, most: int | None = None) -> list[Row[Any]]:
    """The newest run of each series, newest first; no points of sweeps, no levels.

    Args:
        connection: of the database.
        columns: what of it.
        most: how many, at most.
    """
    newest = (
        select(RESULTS.c.series, func.max(RESULTS.c.created).label("created"))
        .where(RESULTS.c.purpose == "run")
        .group_by(RESULTS.c.series)
        .subquery()
    )
    same = and_(RESULTS.c.series == newest.c.series, RESULTS.c.created == newest.c.created, RESULTS.c.purpose == "run")
    chosen = (
        select(RESULTS.c.series, RESULTS.c.id, *columns)
        .join(newest, same)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
    )
    found: dict[str, Row[Any]] = {}
    for each in connection.execute(chosen):
        if most is not None and len(found) >= most:
            break
        found.setdefault(each.series, each)
    return list(found.values())


def history(connection: Connection, series: str) -> tuple[list[Row[Any]], bool]:
    """The runs of a comparison key, oldest first, of very many the newest; and whether there are older ones.

    Raises:
        Problem: there are none.
    """
    chosen = (
        select(*LISTED)
        .where(RESULTS.c.purpose == "run", RESULTS.c.series == series)
        .order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc())
        .limit(HISTORY + 1)
    )
    found = list(connection.execute(chosen))
    if not found:
        raise absent("comparison key", series)
    return found[:HISTORY][::-1], len(found) > HISTORY


def change_points(rows: Sequence[Row[Any]], threshold: float) -> list[int]:
    """Return the indexes in a history at which the step time changed.

    Args:
        rows: results, oldest first; those without a step time are skipped.
        threshold: smallest relative difference that matters.
    """
    timed = [index for index, row in enumerate(rows) if row.step is not None and row.step > 0]
    return [timed[index] for index in changepoints.change_points([rows[index].step for index in timed], threshold)]


def group(connection: Connection, column: str, value: str, most: int) -> list[Row[Any]]:
    """Results that belong together, in the order in which they were begun.

    Args:
        connection: of the database.
        column: `group` or `parent`.
        value: what they share.
        most: how many, at most.
    """
    chosen = select(*LISTED).where(RESULTS.c[column] == value).order_by(RESULTS.c.created, RESULTS.c.id).limit(most)
    return list(connection.execute(chosen))


def named(connection: Connection, names: Sequence[str]) -> list[Row[Any]]:
    """The results of these ids that have come, in the order in which they were begun."""
    chosen = select(*LISTED).where(RESULTS.c.id.in_(names)).order_by(RESULTS.c.created, RESULTS.c.id)
    return list(connection.execute(chosen))


def explanation(connection: Connection, name: str) -> Explanation:
    """An explanation.

    Raises:
        Problem: there is none.
    """
    found = connection.execute(select(EXPLANATIONS.c.document).where(EXPLANATIONS.c.id == name)).scalar()
    if found is None:
        raise absent("explanation", name)
    return Explanation.model_validate_json(found)


def explanations(connection: Connection, limit: int, cursor: str | None = None) -> tuple[list[Row[Any]], str | None]:
    """Ids and labels of a page, newest first; and the cursor of the next, none where this is the last.

    Raises:
        Problem: the cursor is none of ours.
    """
    at, name = EXPLANATIONS.c.received, EXPLANATIONS.c.id
    chosen = select(name, EXPLANATIONS.c.label, at).order_by(at.desc(), name).limit(limit + 1)
    if cursor is not None:
        received, last = _place(cursor, 2)
        chosen = chosen.where(or_(at < received, and_(at == received, name > last)))
    rows: list[Row[Any]] = list(connection.execute(chosen))
    end = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], _cursor(end.received, end.id) if end is not None else None


@dataclass(frozen=True)
class SeenRun:
    """A run with what the hub knows of it beside.

    Args:
        run: what it said last.
        state: the same, or `lost` where it has been silent for too long.
        seen: microseconds since 1970 when it said so.
    """

    run: RunState
    state: str
    seen: int


@dataclass(frozen=True)
class RunPage:
    """A part of the list of runs.

    Args:
        runs: those that go on first, then the last that were heard of.
        older: cursor of the next page; none where this is the last.
    """

    runs: list[SeenRun]
    older: str | None


def runs(connection: Connection, now: int, limit: int, cursor: str | None = None, prefix: str = "") -> RunPage:
    """A page of runs.

    Args:
        connection: of the database.
        now: microseconds since 1970, by which a silent run is lost.
        limit: how many.
        cursor: where the page before ended.
        prefix: what their ids begin with.

    Raises:
        Problem: the cursor is none of ours.
    """
    going = case((and_(RUNS.c.state == "running", RUNS.c.due >= now), 1), else_=0)
    chosen = select(RUNS, going.label("going")).order_by(going.desc(), RUNS.c.seen.desc(), RUNS.c.id).limit(limit + 1)
    if prefix:
        chosen = chosen.where(func.substr(RUNS.c.id, 1, len(prefix)) == prefix)
    if cursor is not None:
        goes, seen, name = _place(cursor, 3)
        less = and_(going == goes, or_(RUNS.c.seen < seen, and_(RUNS.c.seen == seen, RUNS.c.id > name)))
        chosen = chosen.where(or_(going < goes, less))
    rows = connection.execute(chosen).all()
    last = rows[limit - 1] if len(rows) > limit else None
    older = _cursor(last.going, last.seen, last.id) if last is not None else None
    return RunPage([_seen(each, now) for each in rows[:limit]], older)


def run(connection: Connection, name: str, now: int) -> SeenRun:
    """One run.

    Raises:
        Problem: there is none.
    """
    found = connection.execute(select(RUNS).where(RUNS.c.id == name)).one_or_none()
    if found is None:
        raise absent("run", name)
    return _seen(found, now)


def version(connection: Connection) -> tuple[int, int]:
    """Two numbers that are others after any change of the results."""
    count, total = connection.execute(select(func.count(), func.sum(RESULTS.c.stamp)).select_from(RESULTS)).one()
    return int(count), int(total or 0)


def run_counts(connection: Connection, now: int) -> dict[str, int]:
    """How many runs there are of each state, the lost ones apart."""
    lost = and_(RUNS.c.state == "running", RUNS.c.due < now)
    found = dict.fromkeys(("running", "lost", "finished", "failed", "interrupted"), 0)
    for state, count in connection.execute(select(RUNS.c.state, func.count()).where(~lost).group_by(RUNS.c.state)):
        found[state] = count
    found["lost"] = connection.execute(select(func.count()).select_from(RUNS).where(lost)).scalar_one()
    return found


def choices(connection: Connection) -> dict[str, list[str]]:
    """The values that the commonest filters can have."""
    found = {}
    for name in ("title", "backend", "pool", "status"):
        column = RESULTS.c[name]
        found[name] = [value for (value,) in connection.execute(select(column).distinct().order_by(column).limit(500))]
    return found


def _seen(found: Any, now: int) -> SeenRun:
    state = "lost" if found.state == "running" and found.due < now else found.state
    return SeenRun(RunState.model_validate_json(found.document), state, found.seen)


def _cursor(*place: Any) -> str:
    return base64.urlsafe_b64encode(" ".join(map(str, place)).encode()).decode().rstrip("=")


def _place(cursor: str, count: int) -> tuple[Any, ...]:
    """What a cursor of so many parts holds: numbers, and an id."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        *written, name = text.split(" ", count - 1)
        numbers = [int(each) for each in written]
    except (binascii.Error, ValueError):
        numbers, name = [], ""
    if not name.isprintable() or not name or len(numbers) < count - 1 or not all(0 <= n < 2**63 for n in numbers):
        raise Problem(400, "cursor", "the cursor is none of this hub's", "Take the one that the page before gave.")
    return *numbers, name
