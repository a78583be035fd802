"""Writes: each document that arrives is stored in one transaction, as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Literal

from sqlalchemy import Connection, Table, and_, delete, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from bench.hub.db import precedence, records
from bench.hub.db.database import Database
from bench.hub.db.stored_runs import stored_run
from bench.hub.db.tables import DELETED, DOCUMENTS, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem
from bench.model.explanation import Explanation
from bench.model.receipt import WriteOutcome
from bench.model.result import Result
from bench.model.run_state import RunState

MISSED_HEARTBEATS = 3
"""Heartbeats that a run may miss before it is lost."""


def put_result(database: Database, result: Result, body: bytes, received: int | None = None) -> WriteOutcome:
    """Store a result.

    Args:
        database: where to store it.
        result: the parsed document.
        body: the document as it was sent, which is stored.
        received: when it arrived, in microseconds since 1970. Default: now.

    Raises:
        Problem: the stored result of the same id and attempt is complete and differs.
    """
    row = records.row(result, body)
    if received is not None:
        row["received"] = received
    document = {"id": row["id"], "body": row.pop("body")}
    outcome = database.transact(partial(_put_result, row=row, document=document))
    if outcome == "differs":
        raise Problem(
            409,
            "final",
            f"the hub has a complete result '{result.id}' that differs from this one",
            "A complete result is final. Use another id for a new measurement.",
        )
    return outcome


def _put_result(
    connection: Connection, row: dict[str, Any], document: dict[str, Any]
) -> WriteOutcome | Literal["differs"]:
    if _insert(connection, RESULTS, row):
        return _unless_deleted(connection, row, document)
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
    stored = connection.execute(
        select(RESULTS.c.digest, RESULTS.c.precedence, RESULTS.c.attempt).where(RESULTS.c.id == row["id"])
    ).one_or_none()
    if stored is None:  # it was deleted since the insertion was tried
        return _put_result(connection, row, document)
    if stored.digest == row["digest"]:
        return "same"
    if stored.precedence == row["precedence"] and stored.attempt == row["attempt"]:
        return "differs"
    return "superseded"


def _unless_deleted(connection: Connection, row: dict[str, Any], document: dict[str, Any]) -> WriteOutcome:
    """Complete a new result, unless somebody deleted this state or a later one of it.

    The check follows the insertion, because the insertion waits for a concurrent deletion.
    """
    deleted = connection.execute(select(DELETED.c.precedence).where(DELETED.c.id == row["id"])).scalar()
    if deleted is not None and deleted >= row["precedence"]:
        connection.execute(delete(RESULTS).where(RESULTS.c.id == row["id"]))
        return "superseded"
    if deleted is not None:
        connection.execute(delete(DELETED).where(DELETED.c.id == row["id"]))
    connection.execute(DOCUMENTS.insert(), document)
    return "created"


def put_run(database: Database, run: RunState, received: int | None = None, *, imported: bool = False) -> WriteOutcome:
    """Store the state of a run: its start, a heartbeat, or its end.

    Args:
        database: where to store it.
        run: the state.
        received: when it arrived, in microseconds since 1970. Default: now.
        imported: whether another hub received it. Then it does not replace a running state of the same rank: only the
            clocks of both hubs could tell which is later.
    """
    last_seen = received if received is not None else records.now()
    ended = run.state != "running"
    row = {
        "id": run.id,
        "attempt": run.attempt,
        "precedence": precedence.of_run(run.attempt, run.started, ended),
        "state": run.state,
        "started": records.microseconds(run.started),
        "last_seen": last_seen,
        "deadline": last_seen + int(MISSED_HEARTBEATS * run.heartbeat_seconds * 1e6),
        "document": run.model_dump_json(),
    }
    return database.transact(partial(_put_run, row=row, run=run, imported=imported))


def _put_run(connection: Connection, row: dict[str, Any], run: RunState, imported: bool) -> WriteOutcome:
    if _insert(connection, RUNS, row):
        return "created"
    ended = run.state != "running"
    if run.observed and (outcome := _put_observed(connection, row, run)):
        return outcome
    same_id = RUNS.c.id == row["id"]
    replaced = RUNS.c.precedence < row["precedence"]
    same_rank = RUNS.c.precedence == row["precedence"]
    if run.state in ("finished", "failed") and not run.observed:  # says more than an interruption that the watcher saw
        replaced = or_(replaced, and_(same_rank, RUNS.c.state == "interrupted", RUNS.c.document != row["document"]))
    if not ended and not imported:
        replaced = or_(replaced, same_rank)
    if connection.execute(update(RUNS).where(and_(same_id, replaced)).values(row)).rowcount:
        return "updated"
    stored = connection.execute(select(RUNS.c.document).where(same_id)).one()
    return "same" if stored.document == row["document"] else "superseded"


def _put_observed(connection: Connection, row: dict[str, Any], run: RunState) -> WriteOutcome | None:
    """Store the end of a run that the watcher saw end, even if the run's own last message started later.

    A pod that is killed for memory cannot send its end. A pod that is past its deadline reports only that it was
    interrupted. A run that was interrupted fails later if nothing starts it again. If the attempt has finished, or has
    failed before, the stored state stays.

    Returns:
        The outcome. None if the order of the states decides.
    """
    same_id = RUNS.c.id == row["id"]
    stored = connection.execute(select(RUNS).where(same_id).with_for_update()).one()
    if stored.attempt != run.attempt:
        return None
    ended = run.state != "running"
    if stored.state == "finished" or (ended and stored.state == "failed"):
        return "same" if stored.document == row["document"] else "superseded"
    last_message = stored_run(stored)
    fails_later = (stored.state, run.state) == ("interrupted", "failed")
    if not ended or (last_message.observed and not fails_later):  # the run itself has sent nothing
        return None
    end = last_message.model_copy(update={"state": run.state, "reason": run.reason, "progress": None, "observed": True})
    number = max(stored.precedence + 1, row["precedence"])
    values = {**row, "started": stored.started, "precedence": number, "document": end.model_dump_json()}
    connection.execute(update(RUNS).where(same_id).values(values))
    return "updated"


def put_explanation(
    database: Database, explanation: Explanation, body: bytes, received: int | None = None
) -> WriteOutcome:
    """Store an explanation. It replaces the stored one of the same id if the two differ.

    Args:
        database: where to store it.
        explanation: the parsed document.
        body: the document as it was sent.
        received: when it arrived, in microseconds since 1970. Default: now. An import sets it. An imported explanation
            does not replace one that arrived later by the clocks of the hubs that received them.
    """
    document = json.dumps(json.loads(body))
    row = {
        "id": explanation.id,
        "received": received if received is not None else records.now(),
        "label": records.short(explanation.label),
        "digest": records.digest(document.encode()),
        "document": document,
    }
    return database.transact(partial(_put_explanation, row=row, imported=received is not None))


def _put_explanation(connection: Connection, row: dict[str, Any], imported: bool) -> WriteOutcome:
    if _insert(connection, EXPLANATIONS, row):
        return "created"
    replaced = and_(EXPLANATIONS.c.id == row["id"], EXPLANATIONS.c.digest != row["digest"])
    if imported:
        replaced = and_(replaced, EXPLANATIONS.c.received <= row["received"])
    if connection.execute(update(EXPLANATIONS).where(replaced).values(row)).rowcount:
        return "updated"
    stored = connection.execute(select(EXPLANATIONS.c.digest).where(EXPLANATIONS.c.id == row["id"])).scalar()
    if stored is None:  # it was deleted since the insertion was tried
        return _put_explanation(connection, row, imported)
    return "same" if stored == row["digest"] else "superseded"


def remove_results(connection: Connection, stamps: Sequence[tuple[str, int]]) -> int:
    """Remove results and their documents, except those that have changed. Return how many were removed.

    Args:
        connection: a connection to the database.
        stamps: id and stamp of each result. The stamp detects a change even if the clock was set back.
    """
    unchanged = tuple_(RESULTS.c.id, RESULTS.c.stamp).in_(stamps)
    return int(connection.execute(delete(RESULTS).where(unchanged)).rowcount)


def _insert(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Insert a row unless its id exists; return whether it did. Concurrent inserts of one id wait for each other."""
    return connection.execute(_insert_statement(connection.dialect.name, table), row).first() is not None


@cache
def _insert_statement(dialect: str, table: Table) -> Any:
    """Return the statement. It is built once, because building it takes longer than running it."""
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(table.c.id)
