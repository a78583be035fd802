"""The overview: the latest result of each program, side by side by pool and backend.

Each pool has a table that compares its backends with its reference backend. If there are several pools, the first table
compares all pools and backends with one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import select

from bench.backends import reference
from bench.hub.db import documents, grids, records
from bench.hub.db.database import Database
from bench.hub.db.grids import COLUMNS, PROGRAMS, ComparisonOf, Grid
from bench.hub.db.tables import RESULTS
from bench.hub.pages.layout import NONE, Page, address
from bench.hub.problems import Problem
from bench.model.comparison import Comparison
from bench.model.result import Result
from bench.model.spec import PLACE
from bench.render import numbers
from bench.render.labels import short_labels
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table
from bench.render.sentences.comparison import over_epochs
from bench.render.text import plain

BATCH = 500
"""Values in one query."""


def page(database: Database, threshold: float) -> Page:
    """Return the overview.

    Args:
        database: the database of the results.
        threshold: smallest relative difference that matters.
    """
    found = grids.load(database, threshold)
    if found is None:
        return _empty()
    labels = _labels(database, {program: next(iter(row.values())) for program, row in found.cells.items()})
    sections = [_pool(pool, found, labels) for pool in found.pools]
    if len(found.pools) > 1:
        sections.insert(0, _side_by_side(found, labels))
    about = [f"{numbers.count(found.programs, 'program')}, the most recent first."]
    if found.programs > PROGRAMS:
        about.append(f"The tables show the {PROGRAMS} most recent ones. The list of results shows all.")
    return Page("Overview", tuple(sections), about=tuple(about), current="/")


def _empty() -> Page:
    hint = "Use `devbench run WORKLOAD --hub URL`, or `devbench push DIR --hub URL` for the results of a folder."
    message = Message("note", "The hub has no results yet.", (hint,))
    return Page("Overview", (Section("Side by side", (message,)),), current="/")


def _side_by_side(grid: Grid, labels: Mapping[str, str]) -> Section:
    """Return the table of all pools and backends, each compared with the first one."""
    columns = grid.columns[:COLUMNS]
    first, *others = [f"{pool}, {backend}" for pool, backend in columns]
    head = ["program", first, *(cell for name in others for cell in (name, f"vs. {first}"))]
    rows = [
        _row(labels[program], [(row.get(column), column != columns[0]) for column in columns], grid.across_pools)
        for program, row in grid.cells.items()
    ]
    caption = f"Latest result of each program, pool and backend: step time, and speed compared with {first}"
    content: list[Table | Message] = [Table(plain(caption), tuple(map(plain, head)), tuple(rows))]
    note = "Results of different pools are not interleaved. Changes of a machine in between affect their ratios."
    content.append(Message("note", note))
    if len(grid.columns) > COLUMNS:
        more = numbers.count(len(grid.columns) - COLUMNS, "more column is", "more columns are")
        content.append(Message("note", f"{more} only in the tables of the pools."))
    return Section("Side by side", tuple(content))


def _pool(pool: str, grid: Grid, labels: Mapping[str, str]) -> Section:
    """Return the table of one pool: its backends, each compared with the reference backend."""
    backends = [backend for name, backend in grid.columns if name == pool]
    backends.sort(key=lambda name: (name != reference(), name))
    rows = [
        _row(labels[program], [(row.get((pool, name)), name != reference()) for name in backends], grid.within_pools)
        for program, row in grid.cells.items()
        if any((pool, name) in row for name in backends)
    ]
    head = ["program"]
    for name in backends:
        head += [name] if name == reference() else [name, f"vs. {reference()}"]
    compares = f", and speed compared with {reference()}" if head[1:] != [reference()] else ""
    caption = f"Latest result of each program in {pool}: step time{compares}"
    return Section(plain(pool), (Table(plain(caption), tuple(head), tuple(rows)),))


def _row(label: str, cells: Sequence[tuple[Any, bool]], compared: ComparisonOf) -> Row:
    """Return the row of a program.

    Args:
        label: the label of the program.
        cells: a result or None, and whether its comparison follows.
        compared: all comparisons.
    """
    texts: list[str] = []
    links = [""]
    wrong: list[int] = []
    for result, has_comparison in cells:
        if result is not None and result.status != "complete":
            wrong.append(len(texts))
        texts.append(_step(result) if result is not None else NONE)
        links.append(address("results", result.id) if result is not None else "")
        if has_comparison:
            baseline, comparison = compared.get(result.id, ("", None)) if result is not None else ("", None)
            texts.append(_speed(comparison))
            links.append(address("compare", baseline=baseline, other=result.id) if texts[-1] != NONE else "")
    return Row(label, tuple(texts), "alarm" if wrong else "", wrong=tuple(wrong), links=tuple(links))


def _step(result: Any) -> str:
    """Return the step time, after the status if the result is not complete."""
    step = records.step_interval(result)
    texts = [] if result.status == "complete" else [result.status + (f" ({result.failure})" if result.failure else "")]
    if step:
        texts.append(numbers.interval(step))
    return ": ".join(texts) or "no step"


def _speed(comparison: Comparison | None) -> str:
    """Return verdict and speed, such as "faster: 5.02 times [4.97, 5.07] as fast"."""
    if comparison is None or comparison.ratio is None:
        return NONE
    if comparison.unfair:
        return f"not comparable: {comparison.unfair[0].name}"
    if comparison.speedup is None:
        return NONE
    return f"{comparison.verdict}: {numbers.times(comparison.speedup)} as fast{over_epochs(comparison)}"


def _labels(database: Database, rows: Mapping[str, Any]) -> dict[str, str]:
    """Return a label for each program: title and loop, and what distinguishes programs with the same ones.

    Args:
        database: the database of the results.
        rows: any result of each program.
    """
    labels = {program: f"{row.title}, {row.loop}" for program, row in rows.items()}
    ambiguous = [label for label, count in Counter(labels.values()).items() if count > 1]
    for label in ambiguous:
        programs = [program for program in rows if labels[program] == label]
        details = _distinguishing_labels(database, tuple(rows[program].id for program in programs))
        labels |= {
            program: ", ".join(filter(None, (label, detail))) for program, detail in zip(programs, details, strict=True)
        }
    return labels


@lru_cache(maxsize=64)
def _distinguishing_labels(database: Database, ids: tuple[str, ...]) -> list[str]:
    """Return what distinguishes the programs of results, apart from where they ran. Cached: specs never change."""
    headers: dict[str, str] = {}
    with database.read() as connection:
        for start in range(0, len(ids), BATCH):
            query = select(RESULTS.c.id, RESULTS.c.header).where(RESULTS.c.id.in_(ids[start : start + BATCH]))
            headers |= {row.id: row.header for row in connection.execute(query)}
    try:
        results = [documents.stored(headers[id_], Result) for id_ in ids]
    except (KeyError, Problem):  # removed in the meantime, or of another schema version
        return list(ids)
    same_place = {name: getattr(results[0].spec, name) for name in PLACE}
    return short_labels(
        [result.model_copy(update={"spec": result.spec.model_copy(update=same_place)}) for result in results]
    )
