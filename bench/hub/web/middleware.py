"""Middleware: the hosts that requests may name, HEAD, the headers of every response, and the time until it starts.

It is plain ASGI, so that event streams pass through without buffering.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
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


PROBES = ("/healthz", "/readyz")
"""Paths that may be reached by any host name. A kubelet uses the pod's IP address. They reveal nothing."""

EVENTS = "/events"
"""End of the paths of event streams. Such a response has no end, so HEAD is not answered like GET."""


class Middleware:
    """Wraps the application.

    Args:
        app: the application.
        metrics: counts its requests.
        root: path under which a proxy serves the hub. Requests may have it or not, because a proxy may strip it.
        hosts: names of the hub that requests may use, besides localhost and IP addresses. All if empty.
        private: whether reading needs a password, so that browsers must not store pages.
    """

    def __init__(
        self, app: ASGIApp, metrics: HubMetrics, root: str = "", hosts: Sequence[str] = (), private: bool = False
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.root = root
        self.headers = {**HEADERS, "Cache-Control": "no-store"} if private else HEADERS
        self.guarded = TrustedHostMiddleware(app, hosts, www_redirect=False) if hosts else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.root and f"{scope['path']}/".startswith(f"{self.root}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self.root) or "/"}
        method = scope["method"]
        if method == "HEAD" and not scope["path"].endswith(EVENTS):
            scope = {**scope, "method": "GET"}  # the server leaves the body out
        start = time.perf_counter()
        responded = False

        async def send_with_headers(message: Message) -> None:
            nonlocal responded
            if message["type"] == "http.response.start":
                responded = True
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                self._count(method, scope, message["status"], start)
            await send(message)

        try:
            app = self.app if scope["path"] in PROBES or _names_no_site(scope) else self.guarded
            await app(scope, receive, send_with_headers)
        finally:
            if not responded:
                self._count(method, scope, 500, start)

    def _count(self, method: str, scope: Scope, status: int, start: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.count_request(method, route, status, time.perf_counter() - start)


def _names_no_site(scope: Scope) -> bool:
    """Return whether a request names localhost or an IP address. DNS rebinding needs a name that an attacker owns."""
    host = Headers(scope=scope).get("host", "")
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return True
