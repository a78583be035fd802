"""Metrics over HTTP: served to a Prometheus that scrapes, or pushed to a Pushgateway.

The server is a thread of the command's own process, which sleeps while blocks are timed. It answers every path, in
the text format or in OpenMetrics, as the scraper asks.
"""

from __future__ import annotations

import socket
import socketserver
import threading
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
"""A client that says nothing for so long is let go."""

PUSH_SECONDS = 10.0
JOB = "devbench"


class _Server(socketserver.ThreadingTCPServer):
    """`http.server.HTTPServer` would ask for the machine's name when it starts, which takes long without a resolver."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that hangs up is no news."""


def registry_of(collector: Collector) -> CollectorRegistry:
    """A registry that holds this and nothing of the process."""
    made = CollectorRegistry()
    made.register(collector)
    return made


@contextmanager
def served(collector: Collector, host: str, port: int) -> Iterator[str]:
    """Serves a collector's metrics within; gives their URL.

    Args:
        collector: what is served.
        host: address to listen at; "" is all, IPv6 too where the system has it.
        port: 0 takes any that is free.

    Raises:
        SettingsError: the address can't be had.
    """
    handler = MetricsHandler.factory(registry_of(collector))
    handler.timeout = CLIENT_SECONDS  # type: ignore[attr-defined]
    server = _Server((host, port), handler, bind_and_activate=False)
    server.socket.close()
    try:
        server.socket = _listening(host, port)
    except OSError as error:
        where = f"{host or '*'}:{port}"
        hint = "Give another --metrics-port (0 takes any that is free), or another --metrics-host."
        raise SettingsError(f"metrics can't be served at {where}: {error.strerror or error}", hint) from None
    thread = threading.Thread(target=server.serve_forever, name="devbench-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{_written(host)}:{server.socket.getsockname()[1]}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] if host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def _written(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def push(collector: Collector, url: str, group: Mapping[str, str]) -> None:
    """Puts a collector's metrics in place of what a Pushgateway holds under this grouping key.

    Args:
        collector: what is pushed.
        url: of the Pushgateway; a user and password in it are sent as HTTP Basic.
        group: labels of the group, beside `job`.

    Raises:
        OSError: the gateway can't be reached, or refuses.
    """
    parts = urlsplit(url)
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    handler: Callable[..., Any] = default_handler
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        handler = partial(basic_auth_handler, username=user, password=password)
    push_to_gateway(plain, JOB, registry_of(collector), dict(group), PUSH_SECONDS, handler)
