"""The overview: the latest result of each program, side by side by pool and backend.

Each pool has a table that compares its backends with its reference backend. If there are several pools, the first table
compares all pools and backends with one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from bench.backends import reference
from bench.hub.db import comparison_keys, comparisons, documents, records
from bench.hub.db.database import Database
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
from bench.render.text import plain

KEYS = 2_000
"""Maximum number of comparison keys, the newest."""

PROGRAMS = 150
"""Maximum number of programs in a table, those that ran last."""

COLUMNS = 12
"""Maximum number of pools and backends side by side in one table."""

BATCH = 500
"""Values in one query."""

NEEDED = [
    RESULTS.c[name]
    for name in (
        "program", "title", "loop", "label", "pool", "backend", "digest", "group", "status", "failure", "created",
        "step", "step_low", "step_high", "processes",
    )
]  # fmt: skip

GridColumn = tuple[str, str]
"""Pool and backend."""

RowPair = tuple[Any, Any]
"""The rows of a baseline and of the result that is compared with it."""

Compared = Mapping[str, tuple[str, Comparison]]
"""The id of the baseline of a result, and their comparison, by the result's id."""


@dataclass(frozen=True)
class Grid:
    """The latest result of each program in each pool and backend.

    Args:
        cells: the results, by program and column.
        labels: a label of each program.
        columns: all pools and backends. The others are compared with the first one.
    """

    cells: Mapping[str, Mapping[GridColumn, Any]]
    labels: Mapping[str, str]
    columns: Sequence[GridColumn]

    @property
    def pools(self) -> list[str]:
        """The names of the pools, sorted."""
        return sorted({pool for pool, _ in self.columns})


def page(database: Database, threshold: float) -> Page:
    """Return the overview.

    Args:
        database: of the results.
        threshold: smallest relative difference that matters.
    """
    with database.read() as connection:
        latest = comparison_keys.latest(connection, *NEEDED, limit=KEYS)
        if not latest:
            return _empty()
        group_baselines = _group_baselines(connection, latest)
    programs = list(dict.fromkeys(row.program for row in latest))
    grid = _grid(database, latest, programs[:PROGRAMS])
    within_pools = _compare(database, _pairs_within_pools(grid, group_baselines), threshold)
    sections = [_pool(pool, grid, within_pools) for pool in grid.pools]
    if len(grid.pools) > 1:
        across_pools = _compare(database, _pairs_across_pools(grid), threshold)
        sections.insert(0, _side_by_side(grid, across_pools))
    about = [f"{numbers.count(len(programs), 'program')}, the most recent first."]
    if len(programs) > PROGRAMS:
        about.append(f"The tables show the {PROGRAMS} most recent ones. The list of results shows all.")
    return Page("Overview", tuple(sections), about=tuple(about), current="/")


def _empty() -> Page:
    hint = "Use `devbench run WORKLOAD --hub URL`, or `devbench push DIR --hub URL` for the results of a folder."
    message = Message("note", "The hub has no results yet.", (hint,))
    return Page("Overview", (Section("Side by side", (message,)),), current="/")


def _grid(database: Database, latest: Iterable[Any], programs: Sequence[str]) -> Grid:
    """Arrange results, which come newest first, by program and column."""
    cells: dict[str, dict[GridColumn, Any]] = {program: {} for program in programs}
    for row in latest:
        if row.program in cells:
            cells[row.program].setdefault((row.pool, row.backend), row)
    labels = _labels(database, {program: next(iter(row.values())) for program, row in cells.items()})
    return Grid(cells, labels, _columns(cells))


def _columns(cells: Mapping[str, Mapping[GridColumn, Any]]) -> list[GridColumn]:
    """Return all pools and backends, first the reference backend of the pool where it ran most programs."""
    counts = Counter(column for row in cells.values() for column in row)
    first = min(counts, key=lambda column: (column[1] != reference(), -counts[column], column))
    others = set(counts) - {first}
    return [first, *sorted(others, key=lambda column: (column[0], column[1] != reference(), column[1]))]


def _group_baselines(connection: Connection, latest: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Return the reference backend's results, by group and program, that were interleaved with the latest ones."""
    groups = sorted({row.group for row in latest if row.backend != reference()})
    baselines = {}
    for start in range(0, len(groups), BATCH):
        query = select(RESULTS.c.id, *NEEDED).where(
            RESULTS.c.group.in_(groups[start : start + BATCH]),
            RESULTS.c.backend == reference(),
            RESULTS.c.purpose == "run",
        )
        for row in connection.execute(query):
            baselines[row.group, row.program] = row
    return baselines


def _pairs_within_pools(grid: Grid, group_baselines: Mapping[tuple[str, str], Any]) -> list[RowPair]:
    """Pair each result with a baseline: the one it was interleaved with, otherwise the latest one of its pool."""
    pairs = []
    for program, row in grid.cells.items():
        for (pool, backend), result in row.items():
            baseline = group_baselines.get((result.group, program)) or row.get((pool, reference()))
            if backend != reference() and baseline is not None:
                pairs.append((baseline, result))
    return pairs


def _pairs_across_pools(grid: Grid) -> list[RowPair]:
    """Pair each result with the result of the same program in the first column."""
    first, *others = grid.columns[:COLUMNS]
    return [
        (row[first], row[column]) for row in grid.cells.values() if first in row for column in others if column in row
    ]


def _compare(database: Database, pairs: Sequence[RowPair], threshold: float) -> Compared:
    wanted = {(base.id, other.id): (base.digest, other.digest) for base, other in pairs}
    by_digests = comparisons.comparisons(database, list(wanted.items()), threshold)
    return {other: (base, by_digests[digests]) for (base, other), digests in wanted.items() if digests in by_digests}


def _side_by_side(grid: Grid, compared: Compared) -> Section:
    """Return the table of all pools and backends, each compared with the first one."""
    columns = grid.columns[:COLUMNS]
    first, *others = [f"{pool}, {backend}" for pool, backend in columns]
    head = ["program", first, *(cell for name in others for cell in (name, f"vs. {first}"))]
    rows = [
        _row(grid.labels[program], [(row.get(column), column != columns[0]) for column in columns], compared)
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


def _pool(pool: str, grid: Grid, compared: Compared) -> Section:
    """Return the table of one pool: its backends, each compared with the reference backend."""
    backends = [backend for name, backend in grid.columns if name == pool]
    backends.sort(key=lambda name: (name != reference(), name))
    rows = [
        _row(grid.labels[program], [(row.get((pool, name)), name != reference()) for name in backends], compared)
        for program, row in grid.cells.items()
        if any((pool, name) in row for name in backends)
    ]
    head = ["program"]
    for name in backends:
        head += [name] if name == reference() else [name, f"vs. {reference()}"]
    compares = f", and speed compared with {reference()}" if head[1:] != [reference()] else ""
    caption = f"Latest result of each program in {pool}: step time{compares}"
    return Section(plain(pool), (Table(plain(caption), tuple(head), tuple(rows)),))


def _row(label: str, cells: Sequence[tuple[Any, bool]], compared: Compared) -> Row:
    """Return the row of a program.

    Args:
        label: of the program.
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
    return f"{comparison.verdict}: {numbers.times(comparison.speedup)} as fast"


def _labels(database: Database, rows: Mapping[str, Any]) -> dict[str, str]:
    """Return a label for each program: title and loop, and what distinguishes programs with the same ones.

    Args:
        database: of the results.
        rows: any result of each program.
    """
    labels = {program: f"{row.title}, {row.loop}" for program, row in rows.items()}
    ambiguous = [label for label, count in Counter(labels.values()).items() if count > 1]
    for label in ambiguous:
        programs = [program for program in rows if labels[program] == label]
        details = _distinguishing_labels(database, tuple(rows[program].id for program in programs))
        labels |= {program: f"{label}, {detail}" for program, detail in zip(programs, details, strict=True)}
    return labels


@lru_cache(maxsize=64)
def _distinguishing_labels(database: Database, ids: tuple[str, ...]) -> list[str]:
    """Return what distinguishes the programs of results, apart from where they ran. It does not change with time."""
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
