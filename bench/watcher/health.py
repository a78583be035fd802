"""The health of the watcher, served to Kubernetes' probes.

`/readyz` fails while a part has failed for longer than `PATIENCE`, such as a list that the API server forbids. The pod
is then not ready, and the response names the cause. `/healthz` fails if the loop has stopped, so that Kubernetes
restarts the container.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 30.0
"""Seconds that a part may fail before the watcher is not ready."""

STALLED = 120.0
"""Seconds without an iteration of the loop after which it counts as stopped."""


class Health:
    """What works and what does not.

    Args:
        parts: what must work before the watcher is ready, such as "Job".
        clock: returns the time of a monotonic clock in seconds.
    """

    def __init__(self, *parts: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        started = clock() - PATIENCE
        self._faults: dict[str, tuple[float, str]] = {part: (started, f"{part}: not listed yet") for part in parts}
        self._turn = clock()

    def works(self, part: str) -> None:
        """Note that a part works."""
        with self._lock:
            self._faults.pop(part, None)

    def fails(self, part: str, message: str) -> None:
        """Note that a part fails, and why."""
        with self._lock:
            since, _ = self._faults.get(part, (self._clock(), ""))
            self._faults[part] = (since, message)

    def turn(self) -> None:
        """Note an iteration of the loop."""
        self._turn = self._clock()

    def faults(self) -> list[str]:
        """Return why the watcher is not ready."""
        with self._lock:
            return [text for since, text in self._faults.values() if self._clock() - since >= PATIENCE]

    def stalled(self) -> bool:
        """Return whether the loop has stopped."""
        return self._clock() - self._turn > STALLED


@contextmanager
def serve(health: Health, port: int) -> Iterator[int]:
    """Serve `/healthz` and `/readyz` on all interfaces. Yield the port.

    Args:
        health: the health that is served.
        port: port to listen on. 0 picks a free one.

    Raises:
        OSError: the port is not available.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path not in ("/healthz", "/readyz"):
                self.send_error(404)
                return
            faults = ["the loop has stopped"] if health.stalled() else []
            faults += health.faults() if self.path == "/readyz" else []
            body = "\n".join(faults or ["ok"]).encode()
            self.send_response(503 if faults else 200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: the probes ask every few seconds."""

    server = ThreadingHTTPServer(("", port), Handler, bind_and_activate=False)
    server.socket.close()
    if socket.has_dualstack_ipv6():
        server.socket = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        server.socket = socket.create_server(("", port))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield int(server.socket.getsockname()[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
