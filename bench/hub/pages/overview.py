"""The overview: what was run, by pool and backend, all beside one of them, and each beside its own pool's CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from bench.analyse import stats
from bench.backends import reference
from bench.hub.db import comparisons, queries, records
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS
from bench.hub.pages.layout import Page, address
from bench.model.comparison import Comparison
from bench.model.result import Result
from bench.render import numbers
from bench.render.labels import short_labels
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table
from bench.render.text import plain

MOST = 2_000
"""Comparison keys that are looked at, the newest."""

ROWS = 150
"""Programs in the table, those that ran last."""

NEEDED = [
    RESULTS.c[name]
    for name in (
        "program", "title", "loop", "label", "pool", "backend", "digest", "group", "status", "failure", "created",
        "step", "step_low", "step_high", "processes",
    )
]  # fmt: skip
BATCH = 500
MOST_COLUMNS = 12
"""Pools and backends that stand side by side in one table."""

Column = tuple[str, str]
"""Pool and backend."""

Cells = Mapping[str, Mapping[Column, Any]]
"""The newest result of each program in each column."""

Verdicts = Mapping[str, tuple[str, Comparison]]
"""By a result's id, the id of what it stands beside, and what came of it."""


def page(database: Database, threshold: float) -> Page:
    """The page."""
    with database.read() as connection:
        found = queries.latest(connection, *NEEDED, limit=MOST)
        if not found:
            hint = "devbench run WORKLOAD --hub … sends its results here; devbench push DIR those of a folder"
            return Page(
                "Overview", (Section("Side by side", (Message("note", f"nothing is here yet. {hint}"),)),), within="/"
            )
        bases = _group_bases(connection, found)
    cells: dict[str, dict[Column, Any]] = {}
    for each in found:  # newest first
        cells.setdefault(each.program, {}).setdefault((each.pool, each.backend), each)
    shown = list(cells)[:ROWS]
    pairs = {
        other.id: base
        for work in shown
        for column, other in cells[work].items()
        if (base := _base(cells[work], column, other, bases)) is not None
    }
    columns = _columns(shown, cells)
    rows_of = {row.id: row for work in shown for row in cells[work].values()}
    across = {
        cells[work][column].id: base
        for work in shown
        if (base := cells[work].get(columns[0])) is not None
        for column in columns[1:MOST_COLUMNS]
        if column in cells[work]
    }
    both = [pairs, across] if len({pool for pool, _ in columns}) > 1 else [pairs]
    asked = {
        (base.id, name): (base.digest, rows_of[name].digest) for each in both for name, base in each.items()
    }  # fmt: skip
    verdicts = comparisons.comparisons(database, list(asked.items()), threshold)
    told = [
        {name: (base.id, verdicts[pair]) for name, base in each.items() if (pair := asked[base.id, name]) in verdicts}
        for each in both
    ]
    labels = _labels(database, {work: next(iter(cells[work].values())) for work in shown})
    sections = [_pool(pool, shown, cells, labels, told[0]) for pool in sorted({pool for pool, _ in columns})]
    if len(told) > 1:
        sections.insert(0, _across(columns, shown, cells, labels, told[1]))
    about = [f"{numbers.count(len(cells), 'program')}, whatever ran last first."]
    if len(cells) > len(shown):
        about.append(f"The table has the {len(shown)} that ran last; the list of results has all.")
    return Page("Overview", tuple(sections), about=tuple(about), within="/")


def _columns(shown: Sequence[str], cells: Cells) -> list[Column]:
    """All pools and backends; first the one that the others stand beside: the CPU that most programs ran on."""
    often = Counter(column for work in shown for column in cells[work])
    base = min(often, key=lambda column: (column[1] != reference(), -often[column], column))
    return [base, *sorted(set(often) - {base}, key=lambda column: (column[0], column[1] != reference(), column[1]))]


def _across(
    columns: Sequence[Column], shown: Sequence[str], cells: Cells, labels: Mapping[str, str], compared: Verdicts
) -> Section:
    """All pools and backends side by side, each as against the first."""
    base, *others = [f"{pool}, {backend}" for pool, backend in columns[:MOST_COLUMNS]]
    head = ["program", base, *(part for name in others for part in (name, f"as against {base}"))]
    rows = [
        _row(labels[work], [(cells[work].get(c), c != columns[0]) for c in columns[:MOST_COLUMNS]], compared)
        for work in shown
    ]
    caption = f"Newest result of each program, pool and backend: time of a step, and beside {base}"
    parts: list[Table | Message] = [Table(plain(caption), tuple(map(plain, head)), tuple(rows))]
    parts.append(Message("note", "what ran in different pools took no turns: a machine's bad day is in its figure"))
    if len(columns) > MOST_COLUMNS:
        parts.append(Message("note", f"{len(columns) - MOST_COLUMNS} more stand in the tables of their pools only"))
    return Section("Side by side", tuple(parts))


def _pool(pool: str, shown: Sequence[str], cells: Cells, labels: Mapping[str, str], compared: Verdicts) -> Section:
    """One pool: its CPU, and beside it what else it has."""
    backends = sorted(
        {backend for work in shown for where, backend in cells[work] if where == pool},
        key=lambda name: (name != reference(), name),
    )
    rows = [
        _row(labels[work], [(cells[work].get((pool, name)), name != reference()) for name in backends], compared)
        for work in shown
        if any((pool, name) in cells[work] for name in backends)
    ]
    head = ["program", *(part for name in backends for part in _head(name))]
    caption = f"Newest result of each program in {pool}: time of a step, and beside its CPU"
    return Section(plain(pool), (Table(plain(caption), tuple(head), tuple(rows)),))


def _head(backend: str) -> list[str]:
    return [backend] if backend == reference() else [backend, f"{backend} as against {reference()}"]


def _row(label: str, columns: Sequence[tuple[Any, bool]], compared: Verdicts) -> Row:
    """A program's row.

    Args:
        label: what it is called.
        columns: results, or none, and whether a verdict stands beside each.
        compared: by a result's id, what it stands beside and the verdict.
    """
    texts: list[str] = []
    links = [""]
    wrong: list[int] = []
    for found, judged in columns:
        if found is not None and found.status != "complete":
            wrong.append(len(texts))
        texts.append(_time(found) if found is not None else "–")
        links.append(address("results", found.id) if found is not None else "")
        if judged:
            base, comparison = compared.get(found.id, ("", None)) if found is not None else ("", None)
            texts.append(_verdict(comparison))
            links.append(address("compare", baseline=base, other=found.id) if comparison else "")
    return Row(label, tuple(texts), "alarm" if wrong else "", wrong=tuple(wrong), links=tuple(links))


def _time(found: Any) -> str:
    step = records.step_interval(found)
    told = [] if found.status == "complete" else [found.status + (f" ({found.failure})" if found.failure else "")]
    if step:
        told.append(numbers.interval(step))
    return ": ".join(told) or "no step"


def _verdict(found: Comparison | None) -> str:
    if found is None or found.ratio is None:
        return "–"
    if found.unfair:
        return f"not comparable: {found.unfair[0].name}"
    if found.ratio.value <= 0:
        return "–"
    return f"{found.verdict}, {numbers.times(stats.inverse(found.ratio))} as fast"


def _base(row: Mapping[Column, Any], column: Column, other: Any, bases: Mapping[tuple[str, str], Any]) -> Any:
    """The CPU's result that another backend's stands beside: that of its own group, else the pool's newest."""
    pool, backend = column
    if backend == reference():
        return None
    return bases.get((other.group, other.program)) or row.get((pool, reference()))


def _group_bases(connection: Connection, found: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Group and program: the CPU's result of the group in which another backend's newest took turns."""
    groups = sorted({each.group for each in found if each.backend != reference()})
    bases = {}
    for start in range(0, len(groups), BATCH):
        chosen = select(RESULTS.c.id, *NEEDED).where(
            RESULTS.c.group.in_(groups[start : start + BATCH]),
            RESULTS.c.backend == reference(),
            RESULTS.c.purpose == "run",
        )
        for each in connection.execute(chosen):
            bases[each.group, each.program] = each
    return bases


def _labels(database: Database, rows: Mapping[str, Any]) -> dict[str, str]:
    """What each program is called: title and loop, and where several share these, what tells them apart."""
    usual = {work: f"{row.title}, {row.loop}" for work, row in rows.items()}
    often = Counter(usual.values())
    found = dict(usual)
    for text in [text for text, count in often.items() if count > 1]:
        same = [work for work in rows if usual[work] == text]
        apart = _apart(database, tuple(rows[work].id for work in same))
        found |= {work: f"{text}, {more}" for work, more in zip(same, apart, strict=True)}
    return found


@lru_cache(maxsize=64)
def _apart(database: Database, ids: tuple[str, ...]) -> list[str]:
    """What tells results apart, whatever their backend; results do not change in that."""
    heads: dict[str, str] = {}
    with database.read() as connection:
        for start in range(0, len(ids), BATCH):
            chosen = select(RESULTS.c.id, RESULTS.c.header).where(RESULTS.c.id.in_(ids[start : start + BATCH]))
            heads |= {row.id: row.header for row in connection.execute(chosen)}
    found = [Result.model_validate_json(heads[name]) for name in ids if name in heads]
    if len(found) < len(ids):  # removed meanwhile
        return list(ids)
    first = found[0].spec
    alike = [
        each.model_copy(
            update={"spec": each.spec.model_copy(update={"backend": first.backend, "threads": first.threads})}
        )
        for each in found
    ]
    return short_labels(alike)
