"""The pages of lists: results by filter, and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import explanation_queries, records, result_queries
from bench.hub.db.result_queries import Filters
from bench.hub.pages.layout import NONE, Choice, Form, Page, address, timestamp
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table

COLUMN_HEADS = ("result", "status", "step", "processes", "pool", "started (UTC)", "TensorFlow", "id")
FILTERS = {"title": "workload", "backend": "backend", "pool": "pool", "status": "status"}
"""The filters of the form, and their labels."""

EXPLANATIONS = 200
"""Explanations per page."""


def results(connection: Connection, filters: Filters, choices: Mapping[str, Sequence[str]]) -> Page:
    """Return a page of results, newest first.

    Args:
        connection: to the database.
        filters: of the results.
        choices: the values that each filter of the form offers.

    Raises:
        Problem: the cursor is invalid.
    """
    columns = filters.columns()
    page = result_queries.results(connection, columns, filters.limit, filters.cursor)
    fields = tuple(Choice(name, label, tuple(choices[name]), columns.get(name, "")) for name, label in FILTERS.items())
    links = []
    if filters.cursor:
        links.append(("Newest results", address("results", **columns, limit=str(filters.limit))))
    if page.next:
        links.append(("Older results", address("results", **columns, limit=str(filters.limit), cursor=page.next)))
    return Page(
        "Results",
        (Section("Newest first", (result_table(page.items),)),),
        links=tuple(links),
        current="/results",
        form=Form("/results", fields),
    )


def result_table(rows: Sequence[Any]) -> Table | Message:
    """Return a table of results with links to their pages, or a message if there are none."""
    if not rows:
        return Message("note", "No results match.")
    return Table("Results", COLUMN_HEADS, tuple(map(_result_row, rows)))


def _result_row(row: Any) -> Row:
    step = records.step_interval(row)
    cells = (
        row.status + (f": {row.failure}" if row.failure else ""),
        numbers.interval(step) if step else NONE,
        str(row.processes),
        row.pool,
        timestamp(row.created),
        row.tensorflow or NONE,
        row.id,
    )
    label = row.label if row.purpose == "run" else f"{row.label} ({row.purpose})"
    return Row(
        label, cells, "" if row.status == "complete" else "alarm", wrong=(0,), links=(address("results", row.id),)
    )


def explanations(connection: Connection, cursor: str | None = None) -> Page:
    """Return a page of explanations, newest first.

    Args:
        connection: to the database.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    page = explanation_queries.explanations(connection, EXPLANATIONS, cursor)
    rows = [
        Row(
            row.label,
            (timestamp(row.received), row.id),
            links=(address("explanations", row.id),),
        )
        for row in page.items
    ]
    content: Table | Message = Table("Explanations", ("explanation of", "received (UTC)", "id"), tuple(rows))
    if not rows:
        hint = "`devbench explain WORKLOAD --hub URL` sends one."
        content = Message("note", "The hub has no explanations yet.", (hint,))
    links = (("Older explanations", address("explanations", cursor=page.next)),) if page.next else ()
    return Page("Explanations", (Section("Newest first", (content,)),), links=links, current="/explanations")
