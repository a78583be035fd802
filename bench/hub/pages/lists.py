"""The pages of lists: results by filter, and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import explanation_queries, records, result_queries
from bench.hub.db.names import names
from bench.hub.db.result_queries import Filters
from bench.hub.pages.layout import NONE, Choice, Form, Page, address, timestamp
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table

COLUMN_HEADS = ("result", "step", "status", "processes", "pool", "started (UTC)", "TensorFlow", "id")
FILTERS = {"title": "workload", "backend": "backend", "pool": "pool", "status": "status", "tag": "tag"}
"""The filters of the form, and their labels."""

EXPLANATIONS = 200
"""Explanations per page."""


def results(connection: Connection, filters: Filters, choices: Mapping[str, Sequence[str]]) -> Page:
    """Return a page of results, newest first.

    Args:
        connection: a connection to the database.
        filters: the filters of the list.
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
        (Section("Newest first", (result_table(connection, page.items),)),),
        links=tuple(links),
        current="/results",
        form=Form("/results", fields),
    )


def result_table(connection: Connection, rows: Sequence[Any]) -> Table | Message:
    """Return a table of results with links to their pages, or a message if there are none."""
    if not rows:
        return Message("note", "No results match.")
    shown = tuple(map(_result_row, rows, names(connection, rows)))
    if not any(row.tags for row in rows):
        return Table("Results", COLUMN_HEADS, shown)
    tagged = (
        replace(line, cells=(*line.cells, row.tags.strip() or NONE)) for line, row in zip(shown, rows, strict=True)
    )
    return Table("Results", (*COLUMN_HEADS, "tags"), tuple(tagged))


def _result_row(row: Any, name: str) -> Row:
    step = records.step_interval(row)
    cells = (
        numbers.interval(step) if step else NONE,
        row.status + (f": {row.failure}" if row.failure else ""),
        str(row.processes),
        row.pool,
        timestamp(row.created),
        row.tensorflow or NONE,
        row.id,
    )
    label = name if row.purpose == "run" else f"{name} ({row.purpose})"
    return Row(
        label, cells, "" if row.status == "complete" else "alarm", wrong=(1,), links=(address("results", row.id),)
    )


def _explanation_names(connection: Connection, rows: Sequence[Any]) -> list[str]:
    """Return the labels of explanations, and what was varied between those with the same label."""
    level_of = {level.parent: level for level in explanation_queries.first_levels(connection, [row.id for row in rows])}
    known = [row for row in rows if row.id in level_of]
    varied = names(connection, [level_of[row.id] for row in known], [row.label for row in known])
    name_of = {row.id: name for row, name in zip(known, varied, strict=True)}
    return [name_of.get(row.id, row.label) for row in rows]


def explanations(connection: Connection, cursor: str | None = None) -> Page:
    """Return a page of explanations, newest first.

    Args:
        connection: a connection to the database.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    page = explanation_queries.explanations(connection, EXPLANATIONS, cursor)
    shown = _explanation_names(connection, page.items)
    rows = [
        Row(name, (timestamp(row.received), row.id), links=(address("explanations", row.id),))
        for row, name in zip(page.items, shown, strict=True)
    ]
    content: Table | Message = Table("Explanations", ("explanation of", "received (UTC)", "id"), tuple(rows))
    if not rows:
        hint = "`devbench explain WORKLOAD --hub URL` sends one."
        content = Message("note", "The hub has no explanations yet.", (hint,))
    links = (("Older explanations", address("explanations", cursor=page.next)),) if page.next else ()
    return Page("Explanations", (Section("Newest first", (content,)),), links=links, current="/explanations")
