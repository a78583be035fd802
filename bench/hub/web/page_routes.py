"""Which address shows which page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from sse_starlette import EventSourceResponse

from bench.hub.db import queries
from bench.hub.db.queries import Filters
from bench.hub.pages import detail, history, layout, lists, overview, runs
from bench.hub.problems import absent
from bench.hub.web.api import At, Id, Named
from bench.hub.web.state import may_read

ROUTES = APIRouter(dependencies=[Depends(may_read)], include_in_schema=False, default_response_class=HTMLResponse)
FREE = APIRouter(include_in_schema=False)
Cursor = Annotated[str | None, Query(max_length=400)]
FOR_EVER = "public, max-age=31536000, immutable"


@ROUTES.get("/")
def show_overview(at: At) -> str:
    """What was run, by pool and backend; made anew when a result has changed."""
    with at.database.read() as connection:
        version = queries.version(connection)
    return at.overview.get(
        version, lambda: layout.render(overview.page(at.database, at.settings.threshold), at.settings.root_path)
    )


@ROUTES.get("/results")
def show_results(at: At, asked: Annotated[Filters, Query()]) -> str:
    """The list of results."""
    with at.database.read() as connection:
        choices = at.choices.get(queries.version(connection), lambda: queries.choices(connection))
        return layout.render(lists.results(connection, asked, choices), at.settings.root_path)


@ROUTES.get("/results/{id}")
def show_result(id: Id, at: At) -> str:  # noqa: A002 - the address says it
    """One result."""
    with at.database.read() as connection:
        return layout.render(detail.result(connection, id, at.settings.threshold), at.settings.root_path)


@ROUTES.get("/compare")
def show_comparison(at: At, base: Named, other: Named) -> str:
    """Two results compared."""
    with at.database.read() as connection:
        return layout.render(detail.pair(connection, base, other, at.settings.threshold), at.settings.root_path)


@ROUTES.get("/history/{series}")
def show_history(series: Id, at: At) -> str:
    """The history of a comparison key."""
    with at.database.read() as connection:
        return layout.render(history.history(connection, series, at.settings.threshold), at.settings.root_path)


@ROUTES.get("/sweeps/{id}")
def show_sweep(id: Id, at: At) -> str:  # noqa: A002
    """A sweep."""
    with at.database.read() as connection:
        return layout.render(detail.sweep(connection, id, at.settings.threshold), at.settings.root_path)


@ROUTES.get("/explanations")
def show_explanations(at: At, cursor: Cursor = None) -> str:
    """The list of explanations."""
    with at.database.read() as connection:
        return layout.render(lists.explanations(connection, cursor), at.settings.root_path)


@ROUTES.get("/explanations/{id}")
def show_explanation(id: Id, at: At) -> str:  # noqa: A002
    """An explanation."""
    with at.database.read() as connection:
        return layout.render(detail.explanation(connection, id, at.settings.threshold), at.settings.root_path)


@ROUTES.get("/runs")
def show_runs(at: At, cursor: Cursor = None) -> str:
    """Runs as they go on."""
    with at.database.read() as connection:
        return layout.render(runs.page(connection, cursor), at.settings.root_path)


@ROUTES.get("/runs/events")
async def stream_runs(request: Request) -> EventSourceResponse:
    """What keeps that page up to date."""
    stream: EventSourceResponse = request.app.state.board.stream()
    return stream


@ROUTES.get("/runs/{id}")
def show_run(id: Id, at: At) -> str:  # noqa: A002
    """One run."""
    with at.database.read() as connection:
        return layout.render(runs.one(connection, id), at.settings.root_path)


@FREE.get("/static/{name}")
def give_asset(name: str) -> Response:
    """Style and script, under names that change with them."""
    found = layout.asset(name)
    if found is None:
        raise absent("file", name)
    return Response(found[0], media_type=found[1], headers={"Cache-Control": FOR_EVER})
