"""A server that answers as the Kubernetes API server does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any]
"""Status and body of a response. No body: None."""

Patch = tuple[str, str, Any]
"""Path, content type and body of a PATCH request."""


@contextmanager
def api_server(
    answer: Callable[[dict[str, str]], Answer], on_patch: Callable[[Patch], Answer] | None = None
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serve answers to queries. Yield the URL and the queries so far.

    Args:
        answer: returns the response to the query of a GET request.
        on_patch: returns the response to a PATCH request.
    """
    queries: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            queries.append(query)
            self.respond(*answer(query))

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert on_patch is not None
            self.respond(*on_patch((self.path, self.headers["Content-Type"], body)))

        def respond(self, status: int, body: Any) -> None:
            content = b"" if body is None else json.dumps(body).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", queries
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
