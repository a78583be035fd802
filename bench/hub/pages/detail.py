"""Pages of results: one, two compared, a sweep, an explanation."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from bench.hub.db import queries, records
from bench.hub.pages.layout import Page, address, careful, drawn
from bench.hub.problems import Problem, not_found
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report.compose import Content, chapter_content
from bench.render.report.document import Section
from bench.render.report.sections import explanation as explained
from bench.render.text import plain

MEMBERS = 60
"""Results that belong together, at most, that are read whole for one page."""

LEVELS = 24
PARTNERS = 12


def result(connection: Connection, name: str, threshold: float) -> Page:
    """One result: its figures, phases, steps, environment and warnings.

    Raises:
        Problem: there is none.
    """
    row = queries.result_row(connection, name)
    told = _told([queries.result(connection, name)], threshold)
    links = [("JSON", address("api", "v1", "results", name))]
    if row.purpose == "run":
        links.insert(0, ("History", address("history", row.series)))
    if row.parent:
        links.insert(0, _whole(connection, row))
    partners = [each for each in queries.related(connection, "group", row.group, PARTNERS) if each.id != name]
    for each in partners:
        links.append((f"Compare with {each.label}", address("compare", baseline=each.id, other=name)))
    started = numbers.timestamp(records.to_datetime(row.created))
    about = f"Started {started} UTC in {row.pool}, with devbench {row.devbench}. Attempt {row.attempt}."
    return Page(told.title, drawn(told.sections), told.sentences, (about,), tuple(links), "/results")


def comparison(connection: Connection, base: str, other: str, threshold: float) -> Page:
    """Two results compared, fair or not: verdict, break-even, phases, steps, what else differs.

    Raises:
        Problem: one is not there.
    """
    rows = [queries.result_row(connection, name) for name in (base, other)]
    told = _told([queries.result(connection, name) for name in (base, other)], threshold)
    links = [(f"{row.label}, {row.id}", address("results", row.id)) for row in rows]
    links.append(("The other way round", address("compare", baseline=other, other=base)))
    links.append(("JSON", address("api", "v1", "comparisons", baseline=base, other=other)))
    first, second = (numbers.timestamp(records.to_datetime(row.created)) for row in rows)
    about = f"Started {first} and {second} UTC in {' and '.join(dict.fromkeys(row.pool for row in rows))}."
    return Page(told.title, drawn(told.sections), told.sentences, (about,), tuple(links), "/results")


def explanation(connection: Connection, name: str, threshold: float) -> Page:
    """Where a step's time goes: the ladder, causes, changes, the roofline, and its levels.

    Raises:
        Problem: there is none.
    """
    found = queries.explanation(connection, name)
    rows = [row for row in queries.related(connection, "parent", name, MEMBERS) if row.purpose == "level"][:LEVELS]
    told = _told([queries.result(connection, row.id) for row in rows], threshold, found)
    links = [(row.label, address("results", row.id)) for row in rows]
    links.append(("JSON", address("api", "v1", "explanations", name)))
    return Page(told.title, drawn(told.sections), told.sentences, (), tuple(links), "/explanations")


def sweep(connection: Connection, name: str, threshold: float) -> Page:
    """A sweep: its curves and where they cross.

    Raises:
        Problem: there is none.
    """
    every = [row for row in queries.related(connection, "parent", name, MEMBERS + 1) if row.purpose == "sweep"]
    if not every:
        raise not_found("sweep", name)
    rows = every[:MEMBERS]
    told = _told([queries.result(connection, row.id) for row in rows], threshold, sweep=True)
    about = f"Started {numbers.timestamp(records.to_datetime(rows[0].created))} UTC in {rows[0].pool}."
    if len(every) > MEMBERS:
        about += f" Of its points the first {MEMBERS} results are shown; `devbench report` shows all of a folder."
    links = (("Its points", address("results", parent=name)),)
    return Page(told.title, drawn(told.sections), told.sentences, (about,), links, "/results")


def _told(results: list[Result], threshold: float, found: Explanation | None = None, sweep: bool = False) -> Content:
    nothing = Message("warning", "the figures of these documents can't be shown; their JSON has them")
    title = plain(found.label if found else results[0].spec.label)
    if not results:  # of an explanation whose results are gone
        assert found is not None
        sections = careful(lambda: explained.sections(found, threshold), [Section("Figures", (nothing,))])
        return Content(explained.title(found), tuple(explained.sentences(found)), tuple(sections))
    fallback = Content(title, (), (Section("Figures", (nothing,)),))
    return careful(lambda: chapter_content(results, threshold, found, sweep), fallback)


def _whole(connection: Connection, row: Any) -> tuple[str, str]:
    """The sweep or the explanation that a result is a part of."""
    if row.purpose == "sweep":
        return "Its sweep", address("sweeps", row.parent)
    try:
        queries.explanation(connection, row.parent)
    except Problem:
        return "What it is part of", address("results", parent=row.parent)
    return "Its explanation", address("explanations", row.parent)
