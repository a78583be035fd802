"""The web application: routes, checks, headers, and the responses to errors."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from sqlalchemy import select
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from bench.config.hub_settings import HubSettings
from bench.errors import SettingsError
from bench.hub.db.database import Database, is_disk_full
from bench.hub.db.sqlite_file import DatabaseReplaced
from bench.hub.db.tables import RESULTS
from bench.hub.pages import layout
from bench.hub.problems import MEDIA_TYPE, SCHEMA, Problem
from bench.hub.web import api, metrics, page_routes
from bench.hub.web.auth import Access
from bench.hub.web.live import RunEvents
from bench.hub.web.metrics import HubMetrics
from bench.hub.web.middleware import HEADERS, Middleware
from bench.hub.web.state import CurrentHub, Hub, hub_of, require_read
from bench.hub.web.threads import in_thread
from bench.version import __version__

LOG = logging.getLogger("devbench.hub")


def create(settings: HubSettings, database: Database) -> FastAPI:
    """Return the application.

    Args:
        settings: the settings of the hub.
        database: the database, with current tables.

    Raises:
        SettingsError: a file of secrets cannot be read, or anyone on the network could write.
    """
    no_docs: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None, "redirect_slashes": False}
    app = FastAPI(title="devbench hub", version=__version__, **no_docs)
    access = Access(settings)
    _check_hosts(settings.allowed_hosts)
    app.state.hub = Hub(settings, database, access, HubMetrics())
    app.state.run_events = RunEvents(app.state.hub)
    app.include_router(api.SEND)
    app.include_router(api.CHANGE)
    app.include_router(api.READ)
    app.include_router(page_routes.PAGES)
    app.include_router(page_routes.ASSETS)
    app.add_api_route("/healthz", _health, include_in_schema=False)
    app.add_api_route("/readyz", _readiness, include_in_schema=False)
    app.add_api_route("/metrics", _metrics, dependencies=[Depends(require_read)], include_in_schema=False)
    app.add_api_route("/openapi.json", _openapi, dependencies=[Depends(require_read)], include_in_schema=False)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_parameter)
    app.add_exception_handler(SQLAlchemyError, _database_error)
    app.add_exception_handler(Exception, _internal_error)
    app.add_middleware(
        Middleware,
        metrics=app.state.hub.metrics,
        root=settings.root_path,
        hosts=settings.allowed_hosts,
        private=bool(access.readers),
    )
    return app


def _check_hosts(hosts: Sequence[str]) -> None:
    for host in hosts:
        if "*" in host.removeprefix("*."):
            raise SettingsError(f"invalid value '{host}' for --allowed-hosts", "Use a name, or *. and a domain.")


async def _health() -> Response:
    """Answer that the process is alive. This needs no thread, so it answers even if all threads are busy."""
    return Response("alive\n", media_type="text/plain")


@in_thread("probe")
def _readiness(hub: CurrentHub) -> Response:
    """Answer that the database is reachable too."""
    with hub.database.read() as connection:
        connection.execute(select(RESULTS.c.id).limit(1)).all()
    return Response("ready\n", media_type="text/plain")


@in_thread("metrics")
def _metrics(hub: CurrentHub) -> Response:
    return Response(hub.metrics.text(hub.database), media_type=metrics.MEDIA_TYPE)


async def _openapi(request: Request) -> JSONResponse:
    """Return the OpenAPI document. It is made once, because that takes long."""
    app: FastAPI = request.app
    if app.openapi_schema is None:
        app.openapi_schema = _openapi_document(app, hub_of(request).settings.root_path)
    return JSONResponse(app.openapi_schema)


def _openapi_document(app: FastAPI, root: str) -> dict[str, Any]:
    """Return the OpenAPI document, with the schemas of the request bodies, which the routes parse themselves."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        routes=app.routes,
        servers=[{"url": root}] if root else None,
    )
    document["components"]["schemas"] |= {**api.body_schemas(), "Problem": SCHEMA}
    document["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "reader": {"type": "http", "scheme": "basic"},
    }
    for path in document["paths"].values():
        for method, operation in path.items():
            operation["security"] = (
                [{"token": []}] if method in ("put", "patch", "delete") else [{"reader": []}, {"token": []}, {}]
            )
    return document


def _problem(request: Request, error: Any) -> Response:
    problem: Problem = error
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
        html = layout.render(layout.problem_page(problem), hub_of(request).settings.root_path)
        return HTMLResponse(html, problem.status, problem.headers)
    return JSONResponse(problem.document(), problem.status, problem.headers, MEDIA_TYPE)


def _http_error(request: Request, error: Any) -> Response:
    status = error.status_code
    kind = {404: "not-found", 405: "method-not-allowed"}.get(status, "rejected")
    detail = f"{request.method} {request.url.path}: {str(error.detail).lower()}"
    return _problem(request, Problem(status, kind, detail, headers=dict(error.headers or {})))


def _invalid_parameter(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"] if part not in ("query", "path"))
    return _problem(request, Problem(422, "invalid-parameter", f"invalid parameter '{name}': {first['msg']}"))


def _database_error(request: Request, error: Any) -> Response:
    if isinstance(error, DataError):
        return _problem(request, Problem(400, "invalid-parameter", "the database cannot hold a value of the request"))
    LOG.error("database error: %s", " ".join(str(error).split())[:500])
    if isinstance(error, DatabaseReplaced):
        hint = "Restart the hub. It keeps nothing that it gets until then, and senders send it again."
        problem = Problem(503, "database-replaced", str(error), hint, {"Retry-After": "10"})
    elif is_disk_full(error):
        problem = Problem(
            503,
            "disk-full",
            "the disk of the hub's database is full",
            "Free some space there. Then send the document again, for example with `devbench push`.",
            {"Retry-After": "2"},
        )
    else:
        detail = "the hub's database does not respond"
        problem = Problem(503, "database-unavailable", detail, "Try again.", {"Retry-After": "2"})
    return _problem(request, problem)


def _internal_error(request: Request, error: Any) -> Response:
    LOG.error("internal error at %s %s", request.method, request.url.path, exc_info=error)
    response = _problem(request, Problem(500, "internal-error", "internal error of the hub; see its log"))
    for name, value in HEADERS.items():  # this response does not pass through the middleware
        response.headers.setdefault(name, value)
    return response
