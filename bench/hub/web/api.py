"""The API: what programs send and ask for, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool

from bench.hub.db import comparisons, documents, queries, records, writes
from bench.hub.db.queries import Filters
from bench.hub.problems import MEDIA_TYPE
from bench.hub.web import body
from bench.hub.web.responses import (
    Explanations,
    History,
    Listed,
    NamedExplanation,
    ResultPage,
    Runs,
    Sent,
    ToldRun,
)
from bench.hub.web.state import Hub, hub, may_read, may_write
from bench.model.comparison import Comparison
from bench.model.explanation import Explanation
from bench.model.result import Result
from bench.model.run_state import RunState

REFS = "#/components/schemas/{model}"
SENT: tuple[tuple[Any, Any], ...] = ((Result, "validation"), (RunState, "validation"), (Explanation, "validation"))

Id = Annotated[str, Path(pattern=documents.ID)]
Named = Annotated[str, Query(pattern=documents.ID)]
At = Annotated[Hub, Depends(hub)]


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {"content": {MEDIA_TYPE: {"schema": {"$ref": REFS.format(model="Problem")}}}}
    return {status: {"description": "A problem document", **content} for status in statuses}


def _takes(model: str) -> dict[str, Any]:
    schema = {"schema": {"$ref": REFS.format(model=model)}}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


def _gives(model: str) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"$ref": REFS.format(model=model)}}
    return {200: {"description": "The document, as it was sent", "content": {"application/json": schema}}}


READ = APIRouter(prefix="/api/v1", dependencies=[Depends(may_read)], responses=_refusals(400, 401, 404, 422))
WRITE = APIRouter(
    prefix="/api/v1", dependencies=[Depends(may_write)], responses=_refusals(400, 401, 409, 413, 415, 422, 503)
)


@WRITE.put("/results/{id}", tags=["results"], openapi_extra=_takes("Result"))
async def send_result(id: Id, request: Request, at: At) -> Sent:  # noqa: A002 - the address says it
    """Takes a result; a complete one is final, another is superseded by a later state or attempt."""

    def put(sent: bytes) -> writes.Outcome:
        result = documents.result(sent)
        documents.named(result, id)
        return writes.put_result(at.database, result, sent)

    return await _stored(id, request, at, put)


@WRITE.put("/runs/{id}", tags=["runs"], openapi_extra=_takes("RunState"))
async def send_run(id: Id, request: Request, at: At) -> Sent:  # noqa: A002
    """Takes the state of a run: its start, a heartbeat, or its end. Silent for three heartbeats, it is lost."""

    def put(sent: bytes) -> writes.Outcome:
        run = documents.run(sent)
        documents.named(run, id)
        return writes.put_run(at.database, run)

    return await _stored(id, request, at, put)


@WRITE.put("/explanations/{id}", tags=["explanations"], openapi_extra=_takes("Explanation"))
async def send_explanation(id: Id, request: Request, at: At) -> Sent:  # noqa: A002
    """Takes what `devbench explain` found."""

    def put(sent: bytes) -> writes.Outcome:
        found = documents.explanation(sent)
        documents.named(found, id)
        return writes.put_explanation(at.database, found, sent)

    return await _stored(id, request, at, put)


async def _stored(name: str, request: Request, at: Hub, put: Callable[[bytes], writes.Outcome]) -> Sent:
    """What becomes of a request's body."""
    async with body.taken(request, at.large) as sent:
        return Sent(id=name, outcome=await run_in_threadpool(put, sent))


@READ.get("/results", tags=["results"])
def list_results(at: At, asked: Annotated[Filters, Query()]) -> ResultPage:
    """Lists results, newest first, page by page."""
    with at.database.read() as connection:
        found = queries.page(connection, asked.chosen(), asked.limit, asked.cursor)
    return ResultPage(results=[Listed.of(row) for row in found.rows], next=found.older)


@READ.get("/results/{id}", tags=["results"], response_class=Response, responses=_gives("Result"))
def one_result(id: Id, at: At) -> Response:  # noqa: A002
    """Gives a result's document."""
    with at.database.read() as connection:
        return Response(queries.body(connection, id), media_type="application/json")


@READ.get("/comparisons", tags=["results"])
def compare(
    at: At,
    base: Named,
    other: Named,
    threshold: Annotated[float | None, Query(gt=0, lt=1, description="relative difference that matters")] = None,
) -> Comparison:
    """Compares two results: which is faster, from which step on, and what else differs."""
    with at.database.read() as connection:
        first, second = (queries.result(connection, name) for name in (base, other))
    return comparisons.compared(first, second, threshold or at.settings.threshold)


@READ.get("/history/{series}", tags=["results"])
def history(series: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], at: At) -> History:
    """Gives all runs of a comparison key, and where their level changed."""
    with at.database.read() as connection:
        rows, more = queries.history(connection, series)
    return History(
        series=series,
        more=more,
        points=[Listed.of(row) for row in rows],
        changes=[rows[place].id for place in queries.change_points(rows, at.settings.threshold)],
    )


@READ.get("/runs", tags=["runs"])
def list_runs(
    at: At,
    limit: Annotated[int, Query(ge=1, le=500, description="runs a page")] = 50,
    cursor: Annotated[str | None, Query(max_length=400, description="where the page before ended")] = None,
    prefix: Annotated[str, Query(max_length=200, description="what the ids of all runs begin with")] = "",
) -> Runs:
    """Lists runs, those that go on first, page by page."""
    with at.database.read() as connection:
        found = queries.runs(connection, records.now(), limit, cursor, prefix)
    return Runs(runs=[ToldRun.of(each) for each in found.runs], next=found.older)


@READ.get("/runs/{id}", tags=["runs"])
def one_run(id: Id, at: At) -> ToldRun:  # noqa: A002
    """Gives a run."""
    with at.database.read() as connection:
        return ToldRun.of(queries.run(connection, id, records.now()))


@READ.get("/explanations", tags=["explanations"])
def list_explanations(
    at: At,
    limit: Annotated[int, Query(ge=1, le=500, description="explanations a page")] = 50,
    cursor: Annotated[str | None, Query(max_length=400, description="where the page before ended")] = None,
) -> Explanations:
    """Lists explanations, newest first, page by page."""
    with at.database.read() as connection:
        rows, older = queries.explanations(connection, limit, cursor)
    named = [NamedExplanation(id=row.id, label=row.label, received=records.moment(row.received)) for row in rows]
    return Explanations(explanations=named, next=older)


@READ.get("/explanations/{id}", tags=["explanations"])
def one_explanation(id: Id, at: At) -> Explanation:  # noqa: A002
    """Gives an explanation."""
    with at.database.read() as connection:
        return queries.explanation(connection, id)


def sent_schemas() -> dict[str, Any]:
    """The schemas of the documents that are sent, for the OpenAPI document."""
    _, made = models_json_schema(SENT, ref_template=REFS)
    return dict(made["$defs"])
