"""The latest result of each program in each pool and backend, with the comparisons that the overview shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from bench.backends import reference
from bench.hub.db import comparison_keys, comparisons
from bench.hub.db.database import Database
from bench.hub.db.tables import RESULTS
from bench.model.comparison import Comparison

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

ComparisonOf = Mapping[str, tuple[str, Comparison]]
"""By the id of a result: the id of its baseline, and their comparison."""


@dataclass(frozen=True)
class Grid:
    """The latest result of each program in each pool and backend.

    Args:
        cells: the results, by program and column.
        columns: all pools and backends. The others are compared with the first one.
        programs: number of programs, including those beyond `PROGRAMS`.
        within_pools: comparisons with the reference backend of the same pool.
        across_pools: comparisons with the first column, of the first `COLUMNS`; empty if there is only one pool.
    """

    cells: Mapping[str, Mapping[GridColumn, Any]]
    columns: Sequence[GridColumn]
    programs: int
    within_pools: ComparisonOf
    across_pools: ComparisonOf

    @property
    def pools(self) -> list[str]:
        """The names of the pools, sorted."""
        return _pools(self.columns)


def load(database: Database, threshold: float) -> Grid | None:
    """Arrange the latest results by program and column, and compare them. Return None if there are no results.

    Args:
        database: the database of the results.
        threshold: smallest relative difference that matters.
    """
    with database.read() as connection:
        latest = comparison_keys.latest(connection, *NEEDED, limit=KEYS)
        group_baselines = _group_baselines(connection, latest)
    if not latest:
        return None
    programs = list(dict.fromkeys(row.program for row in latest))
    cells: dict[str, dict[GridColumn, Any]] = {program: {} for program in programs[:PROGRAMS]}
    for row in latest:  # the newest come first
        if row.program in cells:
            cells[row.program].setdefault((row.pool, row.backend), row)
    columns = _columns(cells)
    within = _compare(database, _pairs_within_pools(cells, group_baselines), threshold)
    across = _compare(database, _pairs_across_pools(cells, columns), threshold) if len(_pools(columns)) > 1 else {}
    return Grid(cells, columns, len(programs), within, across)


def _pools(columns: Iterable[GridColumn]) -> list[str]:
    return sorted({pool for pool, _ in columns})


def _columns(cells: Mapping[str, Mapping[GridColumn, Any]]) -> list[GridColumn]:
    """Return all pairs of pool and backend, first the reference backend in the pool where it ran most programs."""
    counts = Counter(column for row in cells.values() for column in row)
    first = min(counts, key=lambda column: (column[1] != reference(), -counts[column], column))
    others = set(counts) - {first}
    return [first, *sorted(others, key=lambda column: (column[0], column[1] != reference(), column[1]))]


def _group_baselines(connection: Connection, latest: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Return the results of the reference backend that were interleaved with the latest ones, by group and program."""
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


def _pairs_within_pools(
    cells: Mapping[str, Mapping[GridColumn, Any]], group_baselines: Mapping[tuple[str, str], Any]
) -> list[RowPair]:
    """Pair each result with a baseline: the one it was interleaved with, otherwise the latest one of its pool."""
    pairs = []
    for program, row in cells.items():
        for (pool, backend), result in row.items():
            baseline = group_baselines.get((result.group, program)) or row.get((pool, reference()))
            if backend != reference() and baseline is not None:
                pairs.append((baseline, result))
    return pairs


def _pairs_across_pools(cells: Mapping[str, Mapping[GridColumn, Any]], columns: Sequence[GridColumn]) -> list[RowPair]:
    """Pair each result with the result of the same program in the first column."""
    first, *others = columns[:COLUMNS]
    return [(row[first], row[column]) for row in cells.values() if first in row for column in others if column in row]


def _compare(database: Database, pairs: Sequence[RowPair], threshold: float) -> ComparisonOf:
    wanted = {(base.id, other.id): (base.digest, other.digest) for base, other in pairs}
    by_digests = comparisons.comparisons(database, list(wanted.items()), threshold)
    return {other: (base, by_digests[digests]) for (base, other), digests in wanted.items() if digests in by_digests}
