"""Around every request: the headers of every answer, and how long it took.

Plain ASGI, so that an event stream passes through as it comes.
"""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.hub.web.metrics import Metrics

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Of every answer that does not say otherwise: nothing is loaded from elsewhere, and nobody else's page shows ours."""


class Around:
    """Wraps an application.

    Args:
        app: what is wrapped.
        metrics: counts its requests.
        root: path under which a proxy shows it; a request may come with it or, where the proxy takes it away, without.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, root: str = "") -> None:
        self.app = app
        self.metrics = metrics
        self.root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.root and f"{scope['path']}/".startswith(f"{self.root}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self.root) or "/"}
        began = time.perf_counter()
        answered = False

        async def told(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                self._seen(scope, message["status"], began)
            await send(message)

        try:
            await self.app(scope, receive, told)
        finally:
            if not answered:
                self._seen(scope, 500, began)

    def _seen(self, scope: Scope, status: int, began: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.seen(scope["method"], route, status, time.perf_counter() - began)
