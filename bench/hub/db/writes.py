"""What comes in goes into the database here: each document in one transaction, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Literal

from sqlalchemy import Connection, Table, and_, delete, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from bench.hub.db import precedence, records
from bench.hub.db.database import Database
from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.run_state import RunState

Outcome = Literal["created", "updated", "same", "superseded"]
"""New; in place of an earlier state; known already; of no use, since a later state is known."""

LOST_AFTER = 3
"""Heartbeats that a run may miss."""


def put_result(database: Database, result: Result, body: bytes, received: int | None = None) -> Outcome:
    """Takes a result.

    Args:
        database: where to.
        result: what was read from the body.
        body: the document as it was sent, which is what is kept.
        received: when it came, where that was earlier.

    Raises:
        Problem: it is complete, and another complete one of the same id and attempt is known.
    """
    row = records.row(result, body)
    if received is not None:
        row["received"] = received
    document = {"id": row["id"], "body": row.pop("body")}
    outcome = database.run(partial(_put_result, row=row, document=document))
    if outcome == "differs":
        raise Problem(
            409,
            "final",
            f"result '{result.id}' is complete and differs from this one",
            "A complete result is final. What was measured anew needs another id, or a later attempt.",
        )
    return outcome


def _put_result(connection: Connection, row: dict[str, Any], document: dict[str, Any]) -> Outcome | Literal["differs"]:
    if _inserted(connection, RESULTS, row):
        connection.execute(DOCUMENTS.insert(), document)
        return "created"
    older = and_(RESULTS.c.id == row["id"], RESULTS.c.precedence < row["precedence"])
    same_rank = and_(
        RESULTS.c.id == row["id"],
        RESULTS.c.precedence == row["precedence"],
        RESULTS.c.precedence != precedence.COMPLETE,
        RESULTS.c.digest != row["digest"],
    )
    if connection.execute(update(RESULTS).where(or_(older, same_rank)).values(row)).rowcount:
        connection.execute(update(DOCUMENTS).where(DOCUMENTS.c.id == row["id"]).values(body=document["body"]))
        return "updated"
    known = connection.execute(
        select(RESULTS.c.digest, RESULTS.c.precedence, RESULTS.c.attempt).where(RESULTS.c.id == row["id"])
    ).one()
    if known.digest == row["digest"]:
        return "same"
    if known.precedence == row["precedence"] and known.attempt == row["attempt"]:
        return "differs"
    return "superseded"


def put_run(database: Database, run: RunState, seen: int | None = None) -> Outcome:
    """Takes the state of a run: its start, a heartbeat, or its end.

    Args:
        database: where to.
        run: what it says.
        seen: when it said so, where that was earlier.
    """
    heard = seen if seen is not None else records.now()
    ended = run.state != "running"
    row = {
        "id": run.id,
        "attempt": run.attempt,
        "precedence": precedence.of_run(run.attempt, run.started, ended),
        "state": run.state,
        "started": records.microseconds(run.started),
        "seen": heard,
        "due": heard + int(LOST_AFTER * run.heartbeat_seconds * 1e6),
        "document": run.model_dump_json(),
    }
    return database.run(partial(_put_run, row=row, run=run))


def _put_run(connection: Connection, row: dict[str, Any], run: RunState) -> Outcome:
    if _inserted(connection, RUNS, row):
        return "created"
    ended = run.state != "running"
    if ended and run.observed and _end_observed(connection, row, run):
        return "updated"
    own = RUNS.c.id == row["id"]
    replaces = RUNS.c.precedence < row["precedence"]
    if not ended:
        replaces = or_(replaces, and_(RUNS.c.precedence == row["precedence"], RUNS.c.seen <= row["seen"]))
    if connection.execute(update(RUNS).where(and_(own, replaces)).values(row)).rowcount:
        return "updated"
    known = connection.execute(select(RUNS.c.document).where(own)).one()
    return "same" if known.document == row["document"] else "superseded"


def _end_observed(connection: Connection, row: dict[str, Any], run: RunState) -> bool:
    """Puts an end that was seen from outside into the state that a run gave of itself, which may have begun later.

    A pod that is killed for memory says nothing any more, and one that is past its deadline only that it was
    interrupted. What a run said of a good or a bad end stays.
    """
    own = RUNS.c.id == row["id"]
    known = connection.execute(select(RUNS).where(own).with_for_update()).one()
    if known.attempt != run.attempt or known.state not in ("running", "interrupted"):
        return False
    told = RunState.model_validate_json(known.document)
    if told.observed:  # nothing but a watcher has spoken of it
        return False
    changed = told.model_copy(update={"state": run.state, "reason": run.reason, "now": None, "observed": True})
    number = max(known.precedence + 1, row["precedence"])
    values = {**row, "started": known.started, "precedence": number, "document": changed.model_dump_json()}
    connection.execute(update(RUNS).where(own).values(values))
    return True


def put_explanation(database: Database, found: Explanation, body: bytes, received: int | None = None) -> Outcome:
    """Takes an explanation; a later one of the same id, which holds more, takes its place."""
    document = json.dumps(json.loads(body))
    row = {
        "id": found.id,
        "received": received if received is not None else records.now(),
        "label": records.short(found.label),
        "digest": records.digest(document.encode()),
        "document": document,
    }
    return database.run(partial(_put_explanation, row=row))


def _put_explanation(connection: Connection, row: dict[str, Any]) -> Outcome:
    if _inserted(connection, EXPLANATIONS, row):
        return "created"
    newer = and_(EXPLANATIONS.c.digest != row["digest"], EXPLANATIONS.c.received <= row["received"])
    own = and_(EXPLANATIONS.c.id == row["id"], newer)
    return "updated" if connection.execute(update(EXPLANATIONS).where(own).values(row)).rowcount else "same"


def remove_results(connection: Connection, seen: Sequence[tuple[str, int]]) -> int:
    """Removes results, and with each its document, but not what came in anew since it was seen; returns how many.

    Args:
        connection: of the database.
        seen: id and stamp of each, since the clock may have been set back.
    """
    chosen = tuple_(RESULTS.c.id, RESULTS.c.stamp).in_(seen)
    return int(connection.execute(delete(RESULTS).where(chosen)).rowcount)


def _inserted(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Whether a row is new; of several that insert it at a time one is told so, and the others wait for it."""
    return connection.execute(_insertion(connection.dialect.name, table), row).first() is not None


@cache
def _insertion(dialect: str, table: Table) -> Any:
    """The statement, made once, since that takes longer than running it."""
    made = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return made(table).on_conflict_do_nothing(index_elements=["id"]).returning(table.c.id)
