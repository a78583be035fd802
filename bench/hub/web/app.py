"""The web application: routes, gates, headers, and what is answered when something is refused."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from bench.config.hub_settings import HubSettings
from bench.hub.db.database import Database, is_full
from bench.hub.db.tables import RESULTS
from bench.hub.pages import layout
from bench.hub.problems import MEDIA_TYPE, SCHEMA, Problem
from bench.hub.web import api, metrics, page_routes
from bench.hub.web.auth import Access
from bench.hub.web.live import Board
from bench.hub.web.metrics import Metrics
from bench.hub.web.middleware import HEADERS, Around
from bench.hub.web.state import Hub, may_read, of
from bench.render.report.parts import Remark, Section
from bench.version import __version__

LOG = logging.getLogger("devbench.hub")


def make(settings: HubSettings, database: Database) -> FastAPI:
    """The application.

    Args:
        settings: what it is asked to be.
        database: brought up to date.

    Raises:
        SettingsError: a file of secrets can't be read, or writing would be open to a network.
    """
    own: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None, "redirect_slashes": False}
    app = FastAPI(title="devbench hub", version=__version__, **own)
    app.state.hub = Hub(settings, database, Access(settings), Metrics())
    app.include_router(api.WRITE)
    app.include_router(api.READ)
    app.include_router(page_routes.ROUTES)
    app.include_router(page_routes.FREE)
    app.state.board = Board(app.state.hub)
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    app.add_api_route("/readyz", _ready, include_in_schema=False)
    app.add_api_route("/metrics", _metrics, dependencies=[Depends(may_read)], include_in_schema=False)
    app.add_api_route("/openapi.json", _openapi, dependencies=[Depends(may_read)], include_in_schema=False)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_exception_handler(RequestValidationError, _unasked)
    app.add_exception_handler(SQLAlchemyError, _unready)
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(Around, metrics=app.state.hub.metrics, root=settings.root_path)
    return app


def _alive() -> Response:
    """Says that the process answers."""
    return Response("alive\n", media_type="text/plain")


def _ready(request: Request) -> Response:
    """Says whether the database answers too."""
    with of(request).database.read() as connection:
        connection.execute(select(RESULTS.c.id).limit(1)).all()
    return Response("ready\n", media_type="text/plain")


def _metrics(request: Request) -> Response:
    found = of(request)
    return Response(found.metrics.text(found.database), media_type=metrics.MEDIA_TYPE)


def _openapi(request: Request) -> JSONResponse:
    """The OpenAPI document, with the schemas of what is sent, which the routes read by themselves."""
    app: FastAPI = request.app
    root = of(request).settings.root_path
    made = get_openapi(
        title=app.title,
        version=app.version,
        routes=app.routes,
        servers=[{"url": root}] if root else None,
    )
    made["components"]["schemas"] |= {**api.sent_schemas(), "Problem": SCHEMA}
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "reader": {"type": "http", "scheme": "basic"},
    }
    for path in made["paths"].values():
        for method, operation in path.items():
            operation["security"] = [{"token": []}] if method == "put" else [{"reader": []}, {"token": []}, {}]
    return JSONResponse(made)


def _refused(request: Request, error: Any) -> Response:
    found: Problem = error
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
        shown = layout.render(_page(found), of(request).settings.root_path)
        return HTMLResponse(shown, found.status, found.headers)
    return JSONResponse(found.document(), found.status, found.headers, MEDIA_TYPE)


def _page(found: Problem) -> layout.Page:
    remark = Remark("failure", found.detail, (found.hint,) if found.hint else ())
    return layout.Page(found.title, (Section("What happened", (remark,)),))


def _unrouted(request: Request, error: Any) -> Response:
    status = error.status_code
    kind = {404: "absent", 405: "method"}.get(status, "refused")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return _refused(request, Problem(status, kind, detail, headers=dict(error.headers or {})))


def _unasked(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("query", "path"))
    return _refused(request, Problem(422, "wrong-question", f"{where}: {first['msg']}"))


def _unready(request: Request, error: Any) -> Response:
    LOG.error("the database failed: %s", " ".join(str(error).split())[:500])
    kind, detail, hint = "not-ready", "the hub's database does not answer", "Send it again."
    if is_full(error):
        kind, detail = "full", "the disk of the hub's database is full"
        hint = "Make room there and send it again, as `devbench push` does; what is stored can be read meanwhile."
    return _refused(request, Problem(503, kind, detail, hint, {"Retry-After": "2"}))


def _failed(request: Request, error: Any) -> Response:
    LOG.error("a fault of the hub at %s %s", request.method, request.url.path, exc_info=error)
    answer = _refused(request, Problem(500, "fault", "a fault of the hub itself; its log says more"))
    for name, value in HEADERS.items():  # this answer is made outside of `Around`
        answer.headers.setdefault(name, value)
    return answer
