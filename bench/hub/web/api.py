"""The API: what programs send and query, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic.json_schema import models_json_schema

from bench.hub.db import (
    comparison_keys,
    comparisons,
    documents,
    edits,
    explanation_queries,
    records,
    result_queries,
    run_queries,
    writes,
)
from bench.hub.db.edits import Annotations
from bench.hub.db.result_queries import Filters
from bench.hub.problems import MEDIA_TYPE
from bench.hub.web import body
from bench.hub.web.responses import (
    ExplanationPage,
    ExplanationSummary,
    History,
    Receipt,
    ResultPage,
    ResultSummary,
    RunPage,
    RunStatus,
)
from bench.hub.web.state import CurrentHub, CurrentSender, Hub, require_read, require_write, sender
from bench.hub.web.threads import in_thread
from bench.model.comparison import Comparison
from bench.model.explanation import Explanation
from bench.model.receipt import WriteOutcome
from bench.model.result import Result
from bench.model.run_state import RunState

REFERENCE = "#/components/schemas/{model}"
BODIES: tuple[tuple[Any, Any], ...] = (
    (Result, "validation"),
    (RunState, "validation"),
    (Explanation, "validation"),
    (Annotations, "validation"),
)

Id = Annotated[str, Path(pattern=documents.ID)]
IdParameter = Annotated[str, Query(pattern=documents.ID)]
Cursor = Annotated[str | None, Query(max_length=400, description="`next` of the previous page.")]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {"content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}}}
    return {status: {"description": "A problem document.", **content} for status in statuses}


def _request(model: str) -> dict[str, Any]:
    schema = {"schema": {"$ref": REFERENCE.format(model=model)}}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


def _response(model: str) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"$ref": REFERENCE.format(model=model)}}
    return {200: {"description": "The document as it was sent.", "content": {"application/json": schema}}}


READ = APIRouter(prefix="/api/v1", dependencies=[Depends(require_read)], responses=_problems(400, 401, 403, 404, 422))
SEND = APIRouter(
    prefix="/api/v1", dependencies=[Depends(sender)], responses=_problems(400, 401, 403, 409, 413, 415, 422, 503)
)
"""Routes that the token of a run may use too, for documents of that run. Each route checks its sender."""

CHANGE = APIRouter(
    prefix="/api/v1", dependencies=[Depends(require_write)], responses=_problems(400, 401, 403, 404, 413, 415, 422, 503)
)
"""Routes that need a token that may write everything."""


@SEND.put("/results/{id}", tags=["results"], openapi_extra=_request("Result"))
async def put_result(
    id: Id,  # noqa: A002 - the path's parameter
    request: Request,
    hub: CurrentHub,
    by: CurrentSender,
) -> Receipt:
    """Store a result. A complete result is final; a later state or attempt replaces any other."""
    by.check(id)

    def put(document: bytes) -> WriteOutcome:
        result = documents.result(document)
        documents.check_id(result, id)
        by.check(result.group, result.parent)
        return writes.put_result(hub.database, result, document)

    return await _put(id, request, hub, put)


@CHANGE.patch("/results/{id}", tags=["results"], openapi_extra=_request("Annotations"))
async def annotate_result(id: Id, request: Request, hub: CurrentHub) -> ResultSummary:  # noqa: A002
    """Change the tags and the note of a result, or silence its alerts. Fields that are left out stay."""

    def change(document: bytes) -> ResultSummary:
        edits.annotate(hub.database, id, Annotations.parse(document))
        with hub.database.read() as connection:
            return ResultSummary.of(result_queries.result_row(connection, id))

    with hub.threads.writing() as complete:
        async with body.received(request, hub.bodies) as document:
            complete()
            return await hub.threads.run("write", partial(change, document))


@CHANGE.delete("/results/{id}", tags=["results"], status_code=204)
@in_thread("write")
def delete_result(id: Id, hub: CurrentHub) -> None:  # noqa: A002
    """Delete a result. It stays deleted if it is sent again, unless a later state of it is sent."""
    edits.delete_result(hub.database, id)


@SEND.put("/runs/{id}", tags=["runs"], openapi_extra=_request("RunState"))
async def put_run(
    id: Id,  # noqa: A002
    request: Request,
    hub: CurrentHub,
    by: CurrentSender,
) -> Receipt:
    """Store the state of a run: its start, a heartbeat, or its end. A run that misses three heartbeats is lost."""
    by.check_run(id)

    def put(document: bytes) -> WriteOutcome:
        run = documents.run(document)
        documents.check_id(run, id)
        return writes.put_run(hub.database, run)

    return await _put(id, request, hub, put)


@SEND.put("/explanations/{id}", tags=["explanations"], openapi_extra=_request("Explanation"))
async def put_explanation(
    id: Id,  # noqa: A002
    request: Request,
    hub: CurrentHub,
    by: CurrentSender,
) -> Receipt:
    """Store an explanation of `devbench explain`. A later state replaces it."""
    by.check(id)

    def put(document: bytes) -> WriteOutcome:
        explanation = documents.explanation(document)
        documents.check_id(explanation, id)
        return writes.put_explanation(hub.database, explanation, document)

    return await _put(id, request, hub, put)


async def _put(id_: str, request: Request, hub: Hub, put: Callable[[bytes], WriteOutcome]) -> Receipt:
    with hub.threads.writing() as complete:
        async with body.received(request, hub.bodies) as document:
            complete()
            return Receipt(id=id_, outcome=await hub.threads.run("write", partial(put, document)))


@READ.get("/results", tags=["results"])
@in_thread("read")
def list_results(hub: CurrentHub, filters: Annotated[Filters, Query()]) -> ResultPage:
    """List results, newest first."""
    with hub.database.read() as connection:
        page = result_queries.results(connection, filters.columns(), filters.limit, filters.cursor)
    return ResultPage(results=[ResultSummary.of(row) for row in page.items], next=page.next)


@READ.get("/results/{id}", tags=["results"], response_class=Response, responses=_response("Result"))
@in_thread("read")
def get_result(id: Id, hub: CurrentHub) -> Response:  # noqa: A002
    """Get a result, byte for byte as it was sent."""
    with hub.database.read() as connection:
        return Response(result_queries.result_body(connection, id), media_type="application/json")


@READ.get("/comparisons", tags=["results"])
@in_thread("read")
def compare(
    hub: CurrentHub,
    baseline: IdParameter,
    other: IdParameter,
    threshold: Annotated[
        float | None,
        Query(gt=0, lt=1, description="Smallest relative difference that matters. Default: the hub's setting."),
    ] = None,
) -> Comparison:
    """Compare two results: which is faster, from which step on, and what else differs."""
    with hub.database.read() as connection:
        first, second = (result_queries.result(connection, id_) for id_ in (baseline, other))
    return comparisons.comparison(first, second, threshold or hub.settings.threshold)


@READ.get("/history/{comparison_key}", tags=["results"])
@in_thread("read")
def get_history(comparison_key: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], hub: CurrentHub) -> History:
    """Get the runs of a comparison key, oldest first, and where the step time changed. At most the newest 2,000."""
    with hub.database.read() as connection:
        rows, truncated = comparison_keys.history(connection, comparison_key)
    return History(
        comparison_key=comparison_key,
        results=[ResultSummary.of(row) for row in rows],
        truncated=truncated,
        change_points=[rows[index].id for index in comparison_keys.change_points(rows, hub.settings.threshold)],
    )


@READ.get("/runs", tags=["runs"])
@in_thread("read")
def list_runs(
    hub: CurrentHub,
    limit: Annotated[int, Query(ge=1, le=500, description="Runs per page.")] = 50,
    cursor: Cursor = None,
    prefix: Annotated[str, Query(max_length=200, description="Prefix of the runs' ids.")] = "",
) -> RunPage:
    """List runs, running ones first."""
    with hub.database.read() as connection:
        page = run_queries.runs(connection, records.now(), limit, cursor, prefix)
    return RunPage(runs=[RunStatus.of(run) for run in page.items], next=page.next)


@READ.get("/runs/{id}", tags=["runs"])
@in_thread("read")
def get_run(id: Id, hub: CurrentHub) -> RunStatus:  # noqa: A002
    """Get a run."""
    with hub.database.read() as connection:
        return RunStatus.of(run_queries.run(connection, id, records.now()))


@READ.get("/explanations", tags=["explanations"])
@in_thread("read")
def list_explanations(
    hub: CurrentHub,
    limit: Annotated[int, Query(ge=1, le=500, description="Explanations per page.")] = 50,
    cursor: Cursor = None,
) -> ExplanationPage:
    """List explanations, newest first."""
    with hub.database.read() as connection:
        page = explanation_queries.explanations(connection, limit, cursor)
    summaries = [
        ExplanationSummary(id=row.id, label=row.label, received=records.to_datetime(row.received)) for row in page.items
    ]
    return ExplanationPage(explanations=summaries, next=page.next)


@READ.get("/explanations/{id}", tags=["explanations"])
@in_thread("read")
def get_explanation(id: Id, hub: CurrentHub) -> Explanation:  # noqa: A002
    """Get an explanation."""
    with hub.database.read() as connection:
        return explanation_queries.explanation(connection, id)


def body_schemas() -> dict[str, Any]:
    """Return the schemas of request bodies, for the OpenAPI document."""
    _, schema = models_json_schema(BODIES, ref_template=REFERENCE)
    return dict(schema["$defs"])
