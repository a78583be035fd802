"""The pages of results: one, a comparison of two, an explanation, a sweep, a scaling study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from bench.analyse.analysis import Analysis
from bench.hub.db import analyses, explanation_queries, records, result_queries, scaling_queries
from bench.hub.db.names import names
from bench.hub.pages import scaling as scaling_sections
from bench.hub.pages.charts import with_charts
from bench.hub.pages.layout import Edit, Page, address, guarded, timestamp
from bench.hub.problems import Problem, not_found
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report import content
from bench.render.report.content import Content
from bench.render.report.document import Section
from bench.render.text import plain

MEMBERS = 60
"""Maximum number of results of a sweep that a page reads."""

LEVELS = 24
"""Maximum number of levels of an explanation that a page reads."""

PARTNERS = 12
"""Maximum number of links to comparisons with results of the same group."""


def result(connection: Connection, id_: str, threshold: float) -> Page:
    """Return the page of a result: its figures, phases, steps, environment and messages, and how its program scales.

    Raises:
        Problem: there is no such result, or it has another schema version.
    """
    row = result_queries.result_row(connection, id_)
    others = [other for other in result_queries.related(connection, "group", row.group, MEMBERS) if other.id != id_]
    name, *other_names = names(connection, [row, *others])
    shown = _shown(name, lambda: analyses.outcome(connection, [id_], threshold))
    links = [_parent(connection, row)] if row.parent else []
    if row.purpose == "run":
        links.append(("History", address("history", row.comparison_key)))
    links.append(("JSON", address("api", "v1", "results", id_)))
    for other, other_name in list(zip(others, other_names, strict=True))[:PARTNERS]:
        links.append((f"Compare with {other_name}", address("compare", baseline=other.id, other=id_)))
    about = f"Started {timestamp(row.created)} UTC. Pool: {row.pool}. Attempt: {row.attempt}. devbench {row.devbench}."
    scaled = scaling_sections.sections(connection, row, threshold) if scaling_queries.is_size(row) else []
    shown = replace(shown, title=name, sections=(*scaled, *shown.sections))
    page = _page(shown, about, links, "/results")
    edit = Edit(address("api", "v1", "results", id_), row.tags.strip(), row.note, row.silenced)
    return replace(page, about=(*page.about, *_annotations(row)), edit=edit)


def _annotations(row: Any) -> list[str]:
    """Return what people added to a result, in lines."""
    lines = [f"Tags: {', '.join(row.tags.split())}."] if row.tags else []
    lines += [plain(line) for line in row.note.splitlines() if line.strip()]
    return [*lines, "Alerts about this result are silenced."] if row.silenced else lines


def comparison(connection: Connection, baseline: str, other: str, threshold: float) -> Page:
    """Return the page that compares two results: verdict, break-even, phases, steps and differences.

    Raises:
        Problem: one of them does not exist or has another schema version.
    """
    ids = (baseline, other)
    rows = [result_queries.result_row(connection, id_) for id_ in ids]
    shown = _shown(rows[0].label, lambda: analyses.outcome(connection, ids, threshold))
    shown_names = zip(rows, names(connection, rows), strict=True)
    links = [(f"{name}, {row.id}", address("results", row.id)) for row, name in shown_names]
    links.append(("Swap the sides", address("compare", baseline=other, other=baseline)))
    links.append(("JSON", address("api", "v1", "comparisons", baseline=baseline, other=other)))
    pools = list(dict.fromkeys(row.pool for row in rows))
    label = "Pool" if len(pools) == 1 else "Pools"
    started = numbers.period(records.to_datetime(rows[0].created), records.to_datetime(rows[1].created), "and")
    about = f"Started {started} UTC. {label}: {', '.join(pools)}."
    return _page(shown, about, links, "/results")


def explanation(connection: Connection, id_: str, threshold: float) -> Page:
    """Return the page of an explanation: the ladder, findings, what-ifs, the roofline, and the levels.

    Raises:
        Problem: there is no such explanation, or it has another schema version.
    """
    document = explanation_queries.explanation(connection, id_)
    members = result_queries.related(connection, "parent", id_, MEMBERS)
    levels = [row for row in members if row.purpose == "level"][:LEVELS]
    level_ids = [row.id for row in levels]
    shown = _shown(document.label, lambda: analyses.explained(connection, document, level_ids, threshold))
    links = [(row.label, address("results", row.id)) for row in levels]
    links.append(("JSON", address("api", "v1", "explanations", id_)))
    return _page(shown, "", links, "/explanations")


def sweep(connection: Connection, id_: str, threshold: float) -> Page:
    """Return the page of a sweep: its curves and where they cross.

    Raises:
        Problem: there is no such sweep, or its results have another schema version.
    """
    members = result_queries.related(connection, "parent", id_, MEMBERS + 1)
    points = [row for row in members if row.purpose == "sweep"]
    if not points:
        raise not_found("sweep", id_)
    ids = [row.id for row in points[:MEMBERS]]
    shown = _shown(points[0].label, lambda: analyses.swept(connection, ids, threshold))
    about = f"Started {timestamp(points[0].created)} UTC. Pool: {points[0].pool}."
    if len(points) > MEMBERS:
        about += f" Only the first {MEMBERS} results are shown. `devbench report` shows all results of a folder."
    return _page(shown, about, [("Results of the sweep", address("results", parent=id_))], "/results")


def scaling(connection: Connection, id_: str, threshold: float) -> Page:
    """Return the page of a scaling study: its speed-ups, and where the steps go.

    Raises:
        Problem: there is no such study, or its results have another schema version.
    """
    levels = scaling_queries.levels(connection, id_)
    if not levels:
        raise not_found("scaling study", id_)
    shown = _shown(levels[0].label, lambda: analyses.scaled(connection, [row.id for row in levels], threshold))
    about = f"Started {timestamp(levels[0].created)} UTC. Pool: {levels[0].pool}."
    return _page(shown, about, [("Results of the study", address("results", parent=id_))], "/results")


def _shown(title: str, analyse: Callable[[], Analysis]) -> Content:
    """Return a chapter of the report, or a message if a document has figures that no run can have."""
    message = Message("warning", "The figures of these documents cannot be shown. See their JSON.")
    return guarded(lambda: content.of(analyse()), Content(plain(title), (), (Section("Figures", (message,)),)))


def _page(shown: Content, about: str, links: list[tuple[str, str]], current: str) -> Page:
    lines = (about,) if about else ()
    return Page(shown.title, with_charts(shown.sections), shown.sentences, lines, tuple(links), current)


def _parent(connection: Connection, row: Any) -> tuple[str, str]:
    """Return the link to the sweep, explanation or scaling study that a result belongs to."""
    if row.purpose == "sweep":
        return "Sweep", address("sweeps", row.parent)
    if row.purpose in scaling_queries.PURPOSES:
        return "Scaling study", address("scaling", row.parent)
    try:
        explanation_queries.explanation(connection, row.parent)
    except Problem:
        return "Results of the same explanation", address("results", parent=row.parent)
    return "Explanation", address("explanations", row.parent)
