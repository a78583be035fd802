"""Lists: results by filters, page by page, and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import queries, records
from bench.hub.db.queries import Filters
from bench.hub.pages.layout import Choice, Form, Page, address
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table

HEAD = ("result", "status", "step", "processes", "pool", "begun (UTC)", "TensorFlow", "id")
EXPLANATIONS = 200


def results(connection: Connection, asked: Filters, choices: Mapping[str, Sequence[str]]) -> Page:
    """The list of results that a reader asked for.

    Args:
        connection: of the database.
        asked: filters, and which page.
        choices: values that a filter can have.
    """
    chosen = asked.columns()
    found = queries.results(connection, chosen, asked.limit, asked.cursor)
    fields = tuple(
        Choice(name, label, tuple(choices[name]), chosen.get(name, ""))
        for name, label in {"title": "workload", "backend": "backend", "pool": "pool", "status": "status"}.items()
    )
    links = []
    if found.next:
        links.append(("Older results", address("results", **chosen, limit=str(asked.limit), cursor=found.next)))
    if asked.cursor:
        links.insert(0, ("Newest results", address("results", **chosen, limit=str(asked.limit))))
    return Page(
        "Results",
        (Section("Newest first", (table(found.items),)),),
        links=tuple(links),
        within="/results",
        form=Form("/results", fields),
    )


def table(rows: Any, caption: str = "Results") -> Table | Message:
    """Results in a line each, with links to them."""
    if not rows:
        return Message("note", "there are no such results")
    return Table(caption, HEAD, tuple(map(_row, rows)))


def _row(row: Any) -> Row:
    status = row.status + (f": {row.failure}" if row.failure else "")
    step = records.step_interval(row)
    cells = (
        status,
        numbers.interval(step) if step else "–",
        str(row.processes),
        row.pool,
        numbers.timestamp(records.to_datetime(row.created)),
        row.tensorflow or "–",
        row.id,
    )
    link = address("results", row.id)
    label = row.label if row.purpose == "run" else f"{row.label} ({row.purpose})"
    return Row(label, cells, "" if row.status == "complete" else "alarm", wrong=(0,), links=(link,))


def explanations(connection: Connection, cursor: str | None = None) -> Page:
    """The explanations, newest first.

    Args:
        connection: of the database.
        cursor: where the page before ended.
    """
    found = queries.explanations(connection, EXPLANATIONS, cursor)
    rows = [
        Row(
            row.label,
            (numbers.timestamp(records.to_datetime(row.received)), row.id),
            links=(address("explanations", row.id),),
        )
        for row in found.items
    ]
    told: Table | Message = Table("Explanations", ("of", "received (UTC)", "id"), tuple(rows))
    if not rows:
        told = Message("note", "nobody has sent one yet; `devbench explain WORKLOAD --hub …` does")
    links = (("Older explanations", address("explanations", cursor=found.next)),) if found.next else ()
    return Page("Explanations", (Section("Newest first", (told,)),), links=links, within="/explanations")
