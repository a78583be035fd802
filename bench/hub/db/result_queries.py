"""Queries of results: single ones, and lists by filter, by group, or by sweep, explanation or scaling study."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Row, and_, func, or_, select

from bench.hub.db import documents, records
from bench.hub.db.paging import ListPage, decode, encode
from bench.hub.db.tables import DOCUMENTS, RESULTS
from bench.hub.problems import Problem, not_found
from bench.model.result import Result

LISTED = [column for column in RESULTS.c if column.name not in ("header", "gauges")]
"""The columns that a list reads: all but the large ones."""

CHOICES = 500
"""Maximum number of values that a filter offers."""


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
    comparison_key: str | None = Field(None, description="Comparison key: the spec and where it ran.")
    key: str | None = Field(None, description="Hash of the spec.")
    group: str | None = Field(None, description="Results that were measured together, interleaved.")
    parent: str | None = Field(None, description="Results of one sweep, explanation or scaling study.")
    tag: str | None = Field(None, description="Results with this tag.")
    limit: int = Field(50, ge=1, le=500, description="Results per page.")
    cursor: str | None = Field(None, max_length=400, description="`next` of the previous page.")

    def columns(self) -> dict[str, str]:
        """Return the columns to filter by, and their values."""
        given = self.model_dump(exclude={"limit", "cursor"})
        return {name: records.short(value) for name, value in given.items() if value}


def results(
    connection: Connection, filters: dict[str, str], limit: int, cursor: str | None = None
) -> ListPage[Row[Any]]:
    """Return a page of results, newest first.

    Args:
        connection: a connection to the database.
        filters: columns and their values.
        limit: maximum number of results.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    query = select(*LISTED).order_by(RESULTS.c.created.desc(), RESULTS.c.id.desc()).limit(limit + 1)
    for name, value in filters.items():
        matches = RESULTS.c.tags.contains(f" {value} ", autoescape=True) if name == "tag" else RESULTS.c[name] == value
        query = query.where(matches)
    if cursor is not None:
        created, last_id = decode(cursor, 2)
        earlier, same_time = RESULTS.c.created < created, RESULTS.c.created == created
        query = query.where(or_(earlier, and_(same_time, RESULTS.c.id < last_id)))
    rows = connection.execute(query).all()
    following = encode(rows[limit - 1].created, rows[limit - 1].id) if len(rows) > limit else None
    return ListPage(rows[:limit], following)


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


def headers(connection: Connection, ids: Sequence[str]) -> list[Result]:
    """Return results without their samples, oldest first. Those of another schema version are left out."""
    query = select(RESULTS.c.header).where(RESULTS.c.id.in_(ids)).order_by(RESULTS.c.created, RESULTS.c.id)
    found = []
    for header in connection.execute(query).scalars():
        with suppress(Problem):
            found.append(documents.stored(header, Result))
    return found


def related(connection: Connection, column: str, value: str, limit: int) -> list[Row[Any]]:
    """Return results of one group or one parent, oldest first.

    Args:
        connection: a connection to the database.
        column: `group` or `parent`.
        value: the value of the column.
        limit: maximum number of results.
    """
    query = select(*LISTED).where(RESULTS.c[column] == value).order_by(RESULTS.c.created, RESULTS.c.id).limit(limit)
    return list(connection.execute(query))


def filter_choices(connection: Connection) -> dict[str, list[str]]:
    """Return the values that the filters of the results page offer."""
    choices = {}
    for name in ("title", "backend", "pool", "status"):
        column = RESULTS.c[name]
        query = select(column).distinct().order_by(column).limit(CHOICES)
        choices[name] = [value for (value,) in connection.execute(query)]
    tags = connection.execute(select(RESULTS.c.tags).where(RESULTS.c.tags != "").distinct().limit(CHOICES)).scalars()
    choices["tag"] = sorted({tag for value in tags for tag in value.split()})[:CHOICES]
    return choices


def version(connection: Connection) -> tuple[int, int]:
    """Return two numbers that differ after any change of the results."""
    count, total = connection.execute(select(func.count(), func.sum(RESULTS.c.stamp)).select_from(RESULTS)).one()
    return int(count), int(total or 0)
