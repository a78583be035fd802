"""Middleware: the headers of every response, and the time until it starts.

It is plain ASGI, so that event streams pass through without buffering.
"""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.hub.web.metrics import HubMetrics

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Default headers of every response. Pages load nothing from other sites, and other sites cannot embed them."""


class Middleware:
    """Wraps the application.

    Args:
        app: the application.
        metrics: counts its requests.
        root: path under which a proxy serves the hub. A request may have it or not, as the proxy passes it on.
    """

    def __init__(self, app: ASGIApp, metrics: HubMetrics, root: str = "") -> None:
        self.app = app
        self.metrics = metrics
        self.root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.root and f"{scope['path']}/".startswith(f"{self.root}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self.root) or "/"}
        start = time.perf_counter()
        responded = False

        async def send_with_headers(message: Message) -> None:
            nonlocal responded
            if message["type"] == "http.response.start":
                responded = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                self._count(scope, message["status"], start)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            if not responded:
                self._count(scope, 500, start)

    def _count(self, scope: Scope, status: int, start: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.count_request(scope["method"], route, status, time.perf_counter() - start)
