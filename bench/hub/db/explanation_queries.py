"""Queries of explanations: single ones and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select

from bench.hub.db import documents
from bench.hub.db.paging import ListPage, decode, encode
from bench.hub.db.result_queries import LISTED
from bench.hub.db.tables import EXPLANATIONS, RESULTS
from bench.hub.problems import not_found
from bench.model.explanation import Explanation


def explanation(connection: Connection, id_: str) -> Explanation:
    """Return an explanation.

    Raises:
        Problem: there is no such explanation, or it has another schema version.
    """
    document = connection.execute(select(EXPLANATIONS.c.document).where(EXPLANATIONS.c.id == id_)).scalar()
    if document is None:
        raise not_found("explanation", id_)
    return documents.stored(document, Explanation)


def explanations(connection: Connection, limit: int, cursor: str | None = None) -> ListPage[Row[Any]]:
    """Return ids, labels and times of receipt of a page of explanations, newest first.

    Args:
        connection: a connection to the database.
        limit: maximum number of explanations.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    time, id_ = EXPLANATIONS.c.received, EXPLANATIONS.c.id
    query = select(id_, EXPLANATIONS.c.label, time).order_by(time.desc(), id_).limit(limit + 1)
    if cursor is not None:
        last_time, last_id = decode(cursor, 2)
        query = query.where(or_(time < last_time, and_(time == last_time, id_ > last_id)))
    rows = list[Row[Any]](connection.execute(query))
    following = encode(rows[limit - 1].received, rows[limit - 1].id) if len(rows) > limit else None
    return ListPage(rows[:limit], following)


def first_levels(connection: Connection, ids: Sequence[str]) -> list[Row[Any]]:
    """Return the level with the smallest id of each of these explanations, if the hub has its levels."""
    first = (
        select(func.min(RESULTS.c.id))
        .where(RESULTS.c.parent.in_(ids), RESULTS.c.purpose == "level")
        .group_by(RESULTS.c.parent)
    )
    return list(connection.execute(select(*LISTED).where(RESULTS.c.id.in_(first))))
