"""The page of a history: the step time of one comparison key over time, and where it changed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from bench.analyse.changepoints import level_changes, relative_change
from bench.hub.db import comparison_keys, records, result_queries
from bench.hub.db.names import names
from bench.hub.pages.charts import with_charts
from bench.hub.pages.layout import NONE, Page, address, timestamp
from bench.render import numbers
from bench.render.charts import timeline
from bench.render.report.document import Figure, Row, Section, Table

MAX_ROWS = 200
"""Maximum number of runs in the table."""

PARTNERS = 60
"""Maximum number of results of the same group that the name in the title is distinguished from."""

NODE_HEADS = ("node", "step (median)", "fastest to slowest run", "vs. fastest node", "runs")
COLUMN_HEADS = ("started (UTC)", "step", "vs. previous run", "processes", "status", "TensorFlow", "devbench", "id")


def page(connection: Connection, comparison_key: str, threshold: float) -> Page:
    """Return the page of a comparison key.

    Args:
        connection: a connection to the database.
        comparison_key: the comparison key.
        threshold: smallest relative difference that matters.

    Raises:
        Problem: there are no runs of this key.
    """
    rows, truncated = comparison_keys.history(connection, comparison_key)
    changes = comparison_keys.change_points(rows, threshold)
    timed = [index for index, row in enumerate(rows) if row.step is not None and row.step > 0]
    last = rows[-1]
    nodes = {row.node for row in rows if row.node}
    sections = [Section("Runs", (_table(rows, set(changes), bool(nodes)),))]
    if len(nodes) > 1 and timed:
        sections.insert(0, Section("Nodes", (_nodes(rows[index] for index in timed),)))
    if timed:
        sections.insert(0, Section("Step time", (_figure(rows, timed, changes),)))
    count = f"The newest {len(rows):,} runs" if truncated else numbers.count(len(rows), "run")
    started = numbers.period(records.to_datetime(rows[0].created), records.to_datetime(last.created))
    about = [f"{count}, started {started} UTC. Pool: {last.pool}."]
    versions = dict.fromkeys(row.tensorflow for row in rows if row.tensorflow)
    if versions:
        about.append(f"TensorFlow {', '.join(versions)}.")
    links = (
        ("Results", address("results", comparison_key=comparison_key)),
        ("JSON", address("api", "v1", "history", comparison_key)),
    )
    sentences = _sentences(rows, timed, changes)
    name = names(connection, [last, *result_queries.related(connection, "group", last.group, PARTNERS)])[0]
    return Page(f"History of {name}", with_charts(sections), sentences, tuple(about), links, "/results")


def _sentences(rows: Sequence[Any], timed: list[int], changes: list[int]) -> tuple[str, ...]:
    """Return a sentence for each change point, which compares the medians after and before it."""
    if not changes:
        return ("The step time has not changed.",) if len(timed) > 1 else ()
    steps = [rows[index].step for index in timed]
    sentences = []
    for level in level_changes(steps, [timed.index(index) for index in changes]):
        since, difference = timestamp(rows[timed[level.start]].created), numbers.signed_percent(level.change)
        sentences.append(
            f"Step time since {since} UTC: {numbers.time(level.value)}, {difference} compared with before."
        )
    return tuple(sentences)


def _figure(rows: Sequence[Any], timed: list[int], changes: list[int]) -> Figure:
    runs = [
        timeline.TimelinePoint(
            records.to_datetime(row.created), row.step, _positive(row.step_low), _positive(row.step_high)
        )
        for row in (rows[index] for index in timed)
    ]
    first, last = numbers.time(runs[0].value), numbers.time(runs[-1].value)
    points = numbers.count(len(changes), "change point")
    return Figure(
        "Step time in seconds with 95% intervals. A dashed line marks a change point.",
        f"Step time of {numbers.count(len(runs), 'run')}, from {first} to {last}, with {points}.",
        partial(timeline.draw, runs, [timed.index(index) for index in changes]),
    )


def _positive(bound: float | None) -> float | None:
    return bound if bound is not None and bound > 0 else None


def _nodes(rows: Iterable[Any]) -> Table:
    """Return a table of the nodes, the fastest first."""
    steps: dict[str, list[float]] = {}
    for row in rows:
        steps.setdefault(row.node or "unknown", []).append(row.step)
    by_speed = sorted(steps.items(), key=lambda item: statistics.median(item[1]))
    fastest = statistics.median(by_speed[0][1])
    table_rows = []
    for node, times in by_speed:
        median = statistics.median(times)
        difference = numbers.signed_percent(relative_change(fastest, median)) if median > fastest else NONE
        extremes = f"{numbers.time(min(times))} to {numbers.time(max(times))}"
        table_rows.append(Row(node, (numbers.time(median), extremes, difference, str(len(times)))))
    return Table("Step time by node, the fastest first", NODE_HEADS, tuple(table_rows))


def _table(rows: Sequence[Any], changes: set[int], with_nodes: bool) -> Table:
    previous = _previous(rows)
    newest = range(len(rows) - 1, max(-1, len(rows) - 1 - MAX_ROWS), -1)
    caption = f"The newest {MAX_ROWS} runs, newest first" if len(rows) > MAX_ROWS else "Runs, newest first"
    table_rows = []
    for index in newest:
        table_rows.append(_row(rows[index], previous[index], index in changes, with_nodes))
    return Table(caption, (*COLUMN_HEADS, "node") if with_nodes else COLUMN_HEADS, tuple(table_rows))


def _previous(rows: Sequence[Any]) -> list[Any]:
    """Return for each row the one before it on the same node. None for the first one of each node."""
    latest: dict[str | None, Any] = {}
    previous = []
    for row in rows:
        previous.append(latest.get(row.node))
        latest[row.node] = row
    return previous


def _row(row: Any, previous: Any, changed: bool, with_node: bool) -> Row:
    step = records.step_interval(row)
    difference = NONE
    if previous is not None and previous.step and row.step:
        difference = numbers.signed_percent(relative_change(previous.step, row.step))
    cells = (
        numbers.interval(step) if step else NONE,
        difference + (" (change point)" if changed else ""),
        str(row.processes),
        row.status,
        row.tensorflow or NONE,
        row.devbench,
        row.id,
        *([row.node or NONE] if with_node else []),
    )
    comparison = address("compare", baseline=previous.id, other=row.id) if previous is not None else ""
    links = (address("results", row.id), "", comparison)
    return Row(timestamp(row.created), cells, "differs" if changed else "", links=links)
