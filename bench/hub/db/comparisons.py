"""Comparisons of stored results, cached in the database: documents are large and do not change.

Another version of devbench may compare differently or write what this one cannot read. Each version replaces the cached
comparisons of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import ValidationError
from sqlalchemy import and_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from bench.analyse.compare import compare
from bench.hub.db import result_queries
from bench.hub.db.database import Database
from bench.hub.db.documents import FIGURE_ERRORS
from bench.hub.db.tables import COMPARISONS, RESULTS
from bench.hub.problems import Problem
from bench.model.comparison import Comparison
from bench.model.record import Record
from bench.model.result import Result
from bench.version import __version__

IdPair = tuple[str, str]
"""The ids of a baseline and of another result, or the digests of their documents."""

BATCH = 200


class CachedComparison(Record):
    """A comparison as it is stored, with the version of devbench that made it."""

    devbench: str
    comparison: Comparison


def comparison(baseline: Result, other: Result, threshold: float, trainings: bool = True) -> Comparison:
    """Compare two results. The arguments are those of `bench.analyse.compare.compare`.

    Raises:
        Problem: their figures cannot be compared at all.
    """
    try:
        return compare(baseline, other, threshold, trainings)
    except FIGURE_ERRORS as error:
        raise Problem(
            422, "not-comparable", f"cannot compare the figures of '{baseline.id}' and '{other.id}': {error}"
        ) from None


def comparisons(
    database: Database, pairs: Sequence[tuple[IdPair, IdPair]], threshold: float
) -> dict[IdPair, Comparison]:
    """Return the comparisons of many pairs, by their digests, without the break-even of the trainings.

    A pair that cannot be compared is left out.

    Args:
        database: the database of the results.
        pairs: the ids and the digests of each pair.
        threshold: smallest relative difference that matters.
    """
    cached = _load(database, [digests for _, digests in pairs], threshold)
    missing = [(ids, digests) for ids, digests in pairs if digests not in cached]
    if missing:
        new = _compare(database, missing, threshold)
        try:
            _store(database, new, threshold)
        except SQLAlchemyError as error:  # they are computed again next time
            logging.getLogger("devbench.hub").error("cannot store comparisons: %s", error)
        cached |= new
    return cached


def remove_stale(database: Database) -> int:
    """Remove the cached comparisons of removed results; return how many were removed."""
    digests = select(RESULTS.c.digest)
    with database.write() as connection:
        stale = COMPARISONS.c.baseline.not_in(digests) | COMPARISONS.c.other.not_in(digests)
        return int(connection.execute(COMPARISONS.delete().where(stale)).rowcount)


def _compare(database: Database, pairs: Iterable[tuple[IdPair, IdPair]], threshold: float) -> dict[IdPair, Comparison]:
    computed: dict[IdPair, Comparison] = {}
    with database.read() as connection:

        @lru_cache(maxsize=16)
        def read(id_: str) -> Result:
            return result_queries.result(connection, id_)

        for (baseline, other), digests in pairs:
            try:
                computed[digests] = comparison(read(baseline), read(other), threshold, trainings=False)
            except Problem:  # removed in the meantime, of another schema version, or not comparable
                continue
    return computed


def _load(database: Database, pairs: Sequence[IdPair], threshold: float) -> dict[IdPair, Comparison]:
    loaded = {}
    columns = tuple_(COMPARISONS.c.baseline, COMPARISONS.c.other)
    with database.read() as connection:
        for start in range(0, len(pairs), BATCH):
            batch = [list(pair) for pair in pairs[start : start + BATCH]]
            query = select(COMPARISONS.c.baseline, COMPARISONS.c.other, COMPARISONS.c.document).where(
                and_(COMPARISONS.c.threshold == threshold, columns.in_(batch))
            )
            for baseline, other, document in connection.execute(query):
                if (cached := _parse(document)) is not None:
                    loaded[baseline, other] = cached
    return loaded


def _parse(document: str) -> Comparison | None:
    """Return a cached comparison, or None if another version of devbench made it."""
    try:
        cached = CachedComparison.model_validate_json(document)
    except ValidationError:
        return None
    return cached.comparison if cached.devbench == __version__ else None


def _store(database: Database, new: dict[IdPair, Comparison], threshold: float) -> None:
    if not new:
        return
    insert = (sqlite.insert if database.sqlite else postgresql.insert)(COMPARISONS)
    rows = [
        {
            "baseline": baseline,
            "other": other,
            "threshold": threshold,
            "document": CachedComparison(devbench=__version__, comparison=new[baseline, other]).model_dump_json(),
        }
        for baseline, other in sorted(new)  # in a fixed order, so that two hubs cannot deadlock
    ]
    with database.write() as connection:
        upsert = insert.on_conflict_do_update(
            index_elements=list(COMPARISONS.primary_key), set_={"document": insert.excluded.document}
        )
        connection.execute(upsert, rows)
