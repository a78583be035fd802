"""The addresses of the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from sse_starlette import EventSourceResponse

from bench.hub.db import result_queries
from bench.hub.db.result_queries import Filters
from bench.hub.pages import charts, detail, history, layout, lists, overview, runs
from bench.hub.problems import not_found
from bench.hub.web.api import Cursor, Id, IdParameter
from bench.hub.web.state import CurrentHub, require_read
from bench.hub.web.threads import ARRIVAL, in_thread

PAGES = APIRouter(dependencies=[Depends(require_read)], include_in_schema=False, default_response_class=HTMLResponse)
ASSETS = APIRouter(include_in_schema=False)
CACHE_FOREVER = "public, max-age=31536000, immutable"

CHART_SECONDS = 10.0
"""Seconds after the arrival of a request in which its page may begin to draw charts. If the charts of a page take long,
the pages that wait for its thread have no charts. They do not wait until they are refused."""


def _with_charts(make: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    """Decorate a route with a parameter `hub` that makes a page with charts: it runs in a thread for such pages."""

    @wraps(make)
    def make_in_time(**arguments: Any) -> str:
        charts.BEGIN_UNTIL.set(ARRIVAL.get() + CHART_SECONDS)
        return make(**arguments)

    return in_thread("chart")(make_in_time)


@PAGES.get("/")
@in_thread("read")
def show_overview(hub: CurrentHub) -> str:
    """Show the overview, rendered again after a result has changed."""
    with hub.database.read() as connection:
        version = result_queries.version(connection)
    return hub.overview.get(
        version, lambda: layout.render(overview.page(hub.database, hub.settings.threshold), hub.settings.root_path)
    )


@PAGES.get("/results")
@in_thread("read")
def show_results(hub: CurrentHub, filters: Annotated[Filters, Query()]) -> str:
    """Show a list of results."""
    with hub.database.read() as connection:
        choices = hub.choices.get(result_queries.version(connection), lambda: result_queries.filter_choices(connection))
        return layout.render(lists.results(connection, filters, choices), hub.settings.root_path)


@PAGES.get("/results/{id}")
@_with_charts
def show_result(id: Id, hub: CurrentHub) -> str:  # noqa: A002 - the path's parameter
    """Show a result."""
    with hub.database.read() as connection:
        return layout.render(detail.result(connection, id, hub.settings.threshold), hub.settings.root_path)


@PAGES.get("/compare")
@_with_charts
def show_comparison(hub: CurrentHub, baseline: IdParameter, other: IdParameter) -> str:
    """Show a comparison of two results."""
    with hub.database.read() as connection:
        page = detail.comparison(connection, baseline, other, hub.settings.threshold)
        return layout.render(page, hub.settings.root_path)


@PAGES.get("/history/{comparison_key}")
@_with_charts
def show_history(comparison_key: Id, hub: CurrentHub) -> str:
    """Show the history of a comparison key."""
    with hub.database.read() as connection:
        return layout.render(history.page(connection, comparison_key, hub.settings.threshold), hub.settings.root_path)


@PAGES.get("/sweeps/{id}")
@_with_charts
def show_sweep(id: Id, hub: CurrentHub) -> str:  # noqa: A002
    """Show a sweep."""
    with hub.database.read() as connection:
        return layout.render(detail.sweep(connection, id, hub.settings.threshold), hub.settings.root_path)


@PAGES.get("/scaling/{id}")
@_with_charts
def show_scaling(id: Id, hub: CurrentHub) -> str:  # noqa: A002
    """Show a scaling study."""
    with hub.database.read() as connection:
        return layout.render(detail.scaling(connection, id, hub.settings.threshold), hub.settings.root_path)


@PAGES.get("/explanations")
@in_thread("read")
def show_explanations(hub: CurrentHub, cursor: Cursor = None) -> str:
    """Show a list of explanations."""
    with hub.database.read() as connection:
        return layout.render(lists.explanations(connection, cursor), hub.settings.root_path)


@PAGES.get("/explanations/{id}")
@_with_charts
def show_explanation(id: Id, hub: CurrentHub) -> str:  # noqa: A002
    """Show an explanation."""
    with hub.database.read() as connection:
        return layout.render(detail.explanation(connection, id, hub.settings.threshold), hub.settings.root_path)


@PAGES.get("/runs")
@in_thread("read")
def show_runs(hub: CurrentHub, cursor: Cursor = None) -> str:
    """Show a list of runs."""
    with hub.database.read() as connection:
        return layout.render(runs.page(connection, cursor), hub.settings.root_path)


@PAGES.get("/runs/events")
async def stream_runs(request: Request) -> EventSourceResponse:
    """Stream the live updates of the list of runs."""
    stream: EventSourceResponse = request.app.state.run_events.stream()
    return stream


@PAGES.get("/runs/{id}")
@in_thread("read")
def show_run(id: Id, hub: CurrentHub) -> str:  # noqa: A002
    """Show a run."""
    with hub.database.read() as connection:
        return layout.render(runs.run(connection, id), hub.settings.root_path)


@ASSETS.get("/static/{name}")
async def get_asset(name: str) -> Response:
    """Get a stylesheet or a script. Its name changes with its content."""
    asset = layout.asset(name)
    if asset is None:
        raise not_found("file", name)
    content, media_type = asset
    return Response(content, media_type=media_type, headers={"Cache-Control": CACHE_FOREVER})
