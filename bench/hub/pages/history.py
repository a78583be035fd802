"""The history of one comparison key: steps over time, with where their level changed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import queries, records
from bench.hub.pages.layout import Page, address, drawn
from bench.render import numbers
from bench.render.charts import timeline
from bench.render.report.document import Figure, Row, Section, Table

LISTED = 200
HEAD = ("begun (UTC)", "step", "to the one before", "processes", "status", "TensorFlow", "devbench", "id")


def page(connection: Connection, series: str, threshold: float) -> Page:
    """The page.

    Raises:
        Problem: there are no such runs.
    """
    rows, more = queries.history(connection, series)
    changes = queries.change_points(rows, threshold)
    last = rows[-1]
    sections = [Section("Runs", (_table(rows, set(changes)),))]
    timed = [place for place, row in enumerate(rows) if row.step is not None and row.step > 0]
    if timed:
        sections.insert(0, Section("Step time", (_figure(rows, timed, changes),)))
    pieces = dict.fromkeys(row.tensorflow for row in rows if row.tensorflow)
    count = f"The newest {len(rows):,} of more" if more else f"{len(rows)}"
    oldest, newest = (numbers.timestamp(records.to_datetime(row.created)) for row in (rows[0], last))
    about = [f"{count} runs in {last.pool}, started {oldest} to {newest} UTC."]
    if pieces:
        about.append(f"TensorFlow {', '.join(pieces)}.")
    links = (("Results", address("results", series=series)), ("JSON", address("api", "v1", "history", series)))
    sentences = _sentences(rows, timed, changes)
    return Page(f"History of {last.label}", drawn(sections), sentences, tuple(about), links, "/results")


def _sentences(rows: Sequence[Any], timed: list[int], changes: list[int]) -> tuple[str, ...]:
    if not changes:
        return ("The step time has not changed.",) if len(timed) > 1 else ()
    told = []
    for place, end in zip(changes, [*changes[1:], len(rows)], strict=True):
        start = max((each for each in [0, *changes] if each < place), default=0)
        before = statistics.median(rows[n].step for n in timed if start <= n < place)
        after = statistics.median(rows[n].step for n in timed if place <= n < end)
        change = numbers.signed_percent(after / before - 1)
        since = numbers.timestamp(records.to_datetime(rows[place].created))
        told.append(f"Step time since {since}: {numbers.time(after)}, {change} to the level before.")
    return tuple(told)


def _figure(rows: Sequence[Any], timed: list[int], changes: list[int]) -> Figure:
    points = [
        timeline.Run(records.to_datetime(row.created), row.step, _positive(row.step_low), _positive(row.step_high))
        for row in (rows[place] for place in timed)
    ]
    places = [timed.index(place) for place in changes]
    first, last = numbers.time(points[0].value), numbers.time(points[-1].value)
    alt = f"Step time over {len(points)} runs, from {first} to {last}; its level changed {len(changes)} times."
    caption = "Seconds a step, with 95% intervals; a dashed line marks where a new level begins."
    return Figure(caption, alt, partial(timeline.draw, points, places))


def _positive(bound: float | None) -> float | None:
    return bound if bound is not None and bound > 0 else None


def _table(rows: Sequence[Any], changes: set[int]) -> Table:
    found = []
    for place in range(len(rows) - 1, max(-1, len(rows) - 1 - LISTED), -1):
        row, before = rows[place], rows[place - 1] if place else None
        step = records.step_interval(row)
        apart = "–"
        if before is not None and before.step and row.step:
            apart = numbers.signed_percent(row.step / before.step - 1)
        cells = (
            numbers.interval(step) if step else "–",
            apart + (", a new level" if place in changes else ""),
            str(row.processes),
            row.status,
            row.tensorflow or "–",
            row.devbench,
            row.id,
        )
        links = (address("results", row.id), "", address("compare", baseline=before.id, other=row.id) if before else "")
        started = numbers.timestamp(records.to_datetime(row.created))
        found.append(Row(started, cells, "differs" if place in changes else "", links=links))
    shown = f", the newest {LISTED}" if len(rows) > LISTED else ""
    return Table(f"Runs, newest first{shown}", HEAD, tuple(found))
