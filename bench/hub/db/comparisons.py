"""Comparisons of stored results. What was compared once is kept, since documents are large and do not change.

Another devbench may judge otherwise, or write what this one can't read, so each keeps its own, in place of the other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import ValidationError
from sqlalchemy import and_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from bench.analyse.compare import compare
from bench.hub.db import queries
from bench.hub.db.database import Database
from bench.hub.db.documents import FIGURE_ERRORS
from bench.hub.db.tables import RESULTS, VERDICTS
from bench.hub.problems import Problem
from bench.model.comparison import Comparison
from bench.model.record import Record
from bench.model.result import Result
from bench.version import __version__

Pair = tuple[str, str]
"""Digests of base and other."""

BATCH = 200


class Made(Record):
    """A comparison as it is stored."""

    devbench: str
    comparison: Comparison


def compared(base: Result, other: Result, threshold: float) -> Comparison:
    """A comparison.

    Raises:
        Problem: the figures of the two can't be compared at all.
    """
    try:
        return compare(base, other, threshold)
    except FIGURE_ERRORS as error:
        raise Problem(
            422, "not-comparable", f"the figures of '{base.id}' and '{other.id}' can't be compared: {error}"
        ) from None


def known(database: Database, pairs: Sequence[tuple[Pair, Pair]], threshold: float) -> dict[Pair, Comparison]:
    """The comparisons of many pairs, made where they are not known yet.

    Args:
        database: of the results.
        pairs: ids of base and other, and the digests of the same.
        threshold: relative difference that matters.
    """
    found = _stored(database, [digests for _, digests in pairs], threshold)
    missing = [(ids, digests) for ids, digests in pairs if digests not in found]
    if missing:
        made = _made(database, missing, threshold)
        _store(database, made, threshold)
        found |= made
    return found


def _made(database: Database, pairs: Iterable[tuple[Pair, Pair]], threshold: float) -> dict[Pair, Comparison]:
    made: dict[Pair, Comparison] = {}
    with database.read() as connection:

        @lru_cache(maxsize=16)
        def read(name: str) -> Result:
            return queries.result(connection, name)

        for (base, other), digests in pairs:
            try:
                made[digests] = compared(read(base), read(other), threshold)
            except Problem:  # removed meanwhile, or of figures that say nothing
                continue
    return made


def _stored(database: Database, wanted: Sequence[Pair], threshold: float) -> dict[Pair, Comparison]:
    found = {}
    with database.read() as connection:
        for start in range(0, len(wanted), BATCH):
            part = [list(pair) for pair in wanted[start : start + BATCH]]
            chosen = select(VERDICTS.c.base, VERDICTS.c.other, VERDICTS.c.document).where(
                and_(VERDICTS.c.threshold == threshold, tuple_(VERDICTS.c.base, VERDICTS.c.other).in_(part))
            )
            for base, other, document in connection.execute(chosen):
                if (own := _own(document)) is not None:
                    found[base, other] = own
    return found


def _own(document: str) -> Comparison | None:
    """What was stored, if this devbench made it."""
    try:
        made = Made.model_validate_json(document)
    except ValidationError:
        return None
    return made.comparison if made.devbench == __version__ else None


def _store(database: Database, made: dict[Pair, Comparison], threshold: float) -> None:
    if not made:
        return
    insert = (sqlite.insert if database.sqlite else postgresql.insert)(VERDICTS)
    rows = [
        {
            "base": base,
            "other": other,
            "threshold": threshold,
            "document": Made(devbench=__version__, comparison=made[base, other]).model_dump_json(),
        }
        for base, other in sorted(made)  # in one order, lest two hubs wait for each other
    ]
    with database.write() as connection:
        replaced = insert.on_conflict_do_update(
            index_elements=list(VERDICTS.primary_key), set_={"document": insert.excluded.document}
        )
        connection.execute(replaced, rows)


def forget(database: Database) -> int:
    """Removes the comparisons of results that are no longer there; returns how many."""
    digests = select(RESULTS.c.digest)
    with database.write() as connection:
        gone = VERDICTS.c.base.not_in(digests) | VERDICTS.c.other.not_in(digests)
        return int(connection.execute(VERDICTS.delete().where(gone)).rowcount)
