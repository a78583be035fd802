"""Metrics over HTTP: served to Prometheus, or pushed to a Pushgateway.

The server is a thread of the command's own process, which sleeps while blocks are timed. It answers every path, in the
text format or in OpenMetrics, whichever the scraper asks for.
"""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import MetricsHandler, basic_auth_handler, default_handler, push_to_gateway
from prometheus_client.registry import Collector

from bench.errors import SettingsError

CLIENT_SECONDS = 10.0
"""Seconds of silence after which a client is disconnected."""

PUSH_SECONDS = 10.0
JOB = "devbench"


class _MetricsServer(socketserver.ThreadingTCPServer):
    """A server that does not look up its host name, which takes long without a resolver. `HTTPServer` does."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore all errors of a request, such as a scraper that hangs up."""


def registry_of(collector: Collector) -> CollectorRegistry:
    """Return a registry with this collector only, without metrics of the process."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


@contextmanager
def serve(
    collector: Collector, host: str, port: int, scraped: Callable[[float], None] = lambda began: None
) -> Iterator[str]:
    """Serve a collector's metrics. Yield their URL.

    Args:
        collector: What is served.
        host: Address to listen on. "" listens on all interfaces, with IPv6 if the system has it.
        port: Port to listen on. 0 picks a free one.
        scraped: Called after each answer, with the time at which the request came (monotonic clock).

    Raises:
        SettingsError: The address is not available.
    """

    class ScrapeHandler(MetricsHandler):
        registry = registry_of(collector)
        timeout = CLIENT_SECONDS

        def do_GET(self) -> None:  # noqa: N802 (the name that http.server calls)
            began = time.monotonic()
            super().do_GET()
            scraped(began)

    server = _MetricsServer((host, port), ScrapeHandler, bind_and_activate=False)
    server.socket.close()
    try:
        server.socket = _listening(host, port)
    except OSError as error:
        address = f"{host or '*'}:{port}"
        hint = "Choose another --metrics-port (0 picks a free one) or another --metrics-host."
        raise SettingsError(f"cannot serve metrics at {address}: {error.strerror or error}", hint) from None
    thread = threading.Thread(target=server.serve_forever, name="devbench-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{_in_url(host)}:{server.socket.getsockname()[1]}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] if host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def _in_url(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def push(collector: Collector, url: str, group: Mapping[str, str]) -> None:
    """Replace what a Pushgateway holds under a grouping key with a collector's metrics.

    Args:
        collector: What is pushed.
        url: URL of the Pushgateway. A user and password in it are sent as HTTP Basic.
        group: Labels of the grouping key, besides `job`.

    Raises:
        OSError: The gateway cannot be reached, or refuses.
        HTTPException: The gateway does not answer with HTTP.
    """
    parts = urlsplit(url)
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    handler: Callable[..., Any] = default_handler
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        handler = partial(basic_auth_handler, username=user, password=password)
    push_to_gateway(plain, JOB, registry_of(collector), dict(group), PUSH_SECONDS, handler)
