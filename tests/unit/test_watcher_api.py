"""The watcher's client of the API server, against a server that answers as Kubernetes does when it is in trouble."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3

from bench.watcher.api import PAGE, Change, Server, follow
from bench.watcher.backoff import FIRST, LONGEST, RESET, Backoff
from bench.watcher.health import Health, serve

pytestmark = pytest.mark.once

Answer = tuple[int, Any]


class Enough(Exception):
    """The client paused as often as the test wants to see."""


@contextmanager
def api_server(answer: Callable[[dict[str, str]], Answer]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serve answers to queries. Yield the URL and the queries so far."""
    queries: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            queries.append(query)
            status, body = answer(query)
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


def pauses(url: str, count: int, health: Health | None = None) -> list[float]:
    """Follow events until the client has paused this often, and return the pauses in seconds."""
    seconds: list[float] = []

    def pause(length: float) -> None:
        seconds.append(length)
        if len(seconds) == count:
            raise Enough

    with pytest.raises(Enough):
        follow(Server("bench", url, Path("/none")), "Event", "", lambda _: None, lambda _: None, health, pause)
    return seconds


def an_empty_list(version: str = "7") -> Answer:
    return 200, {"metadata": {"resourceVersion": version}, "items": []}


@pytest.mark.parametrize(
    "watch",
    [
        (410, {"message": "too old"}),
        (200, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}),
        (200, None),
        (500, {"message": "etcd is down"}),
    ],
    ids=["gone", "gone in the stream", "an empty watch", "a failed watch"],
)
def test_pauses_between_failures_grow(watch: Answer) -> None:
    with api_server(lambda query: watch if "watch" in query else an_empty_list()) as (url, queries):
        seconds = pauses(url, 8)
    assert len([query for query in queries if "watch" in query]) == 8
    assert seconds[0] >= FIRST
    assert seconds[-1] == LONGEST
    assert sum(seconds) > 60, "a client that repeats at once is a burden to the server"


def test_the_pause_is_short_again_after_a_time_without_failures() -> None:
    now = [0.0]
    backoff = Backoff(lambda: now[0], lambda: 0.0)
    assert [backoff.next() for _ in range(7)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST]
    now[0] = RESET
    assert backoff.next() == LONGEST
    now[0] = 2 * RESET + 1
    assert backoff.next() == FIRST


def test_only_warnings_are_listed_in_pages_and_without_what_nobody_reads() -> None:
    def answer(query: dict[str, str]) -> Answer:
        page = int(query.get("continue", "0"))
        item = {
            "metadata": {"name": f"e{page}", "managedFields": ["x" * 1000], "resourceVersion": "1"},
            "type": "Warning",
            "involvedObject": {"kind": "Pod", "uid": "u", "apiVersion": "v1"},
        }
        more = {"continue": str(page + 1)} if page < 2 else {}
        return 200, {"metadata": {"resourceVersion": "7", **more}, "items": [item]}

    with api_server(answer) as (url, queries):
        events, version = Server("bench", url, Path("/none")).list("Event", "")
    assert version == "7"
    assert [(query["limit"], query["fieldSelector"]) for query in queries] == [(str(PAGE), "type=Warning")] * 3
    assert [event["metadata"] for event in events] == [
        {"name": f"e{page}", "resourceVersion": "1", "annotations": {}} for page in range(3)
    ]


def test_a_list_that_the_server_forbids_makes_the_watcher_unready_and_says_why() -> None:
    now = [0.0]
    health = Health("Event", clock=lambda: now[0])
    forbidden = (403, {"message": "events is forbidden"})
    with api_server(lambda _: forbidden) as (url, _), serve(health, 0) as port:
        pauses(url, 1, health)

        def probe(path: str) -> tuple[int, str]:
            response = urllib3.request("GET", f"http://127.0.0.1:{port}{path}", retries=False)
            return response.status, response.data.decode()

        assert probe("/readyz")[0] == 503
        assert "events is forbidden" in probe("/readyz")[1]
        assert probe("/healthz") == (200, "ok")
        health.works("Event")
        assert probe("/readyz") == (200, "ok")
        health.fails("hub", "hub: unknown token")
        assert probe("/readyz") == (200, "ok"), "a short failure does not count"
        now[0] = 60
        assert probe("/readyz") == (503, "hub: unknown token")
        now[0] = 600
        assert probe("/healthz") == (503, "the loop has stopped")
        health.turn()
        assert probe("/healthz") == (200, "ok")


def test_changes_reach_the_watcher_in_order() -> None:
    changes: list[Change] = []
    item = {"metadata": {"name": "e", "resourceVersion": "8"}, "type": "Warning", "involvedObject": {}}

    def answer(query: dict[str, str]) -> Answer:
        if "watch" not in query:
            return an_empty_list()
        return (200, {"type": "ADDED", "object": item}) if query["resourceVersion"] == "7" else (410, None)

    with api_server(answer) as (url, queries):
        server = Server("bench", url, Path("/none"))

        def pause(_: float) -> None:
            raise Enough

        with pytest.raises(Enough):
            follow(server, "Event", "", changes.append, lambda _: None, pause=pause)
    assert [change.action for change in changes] == ["LIST", "SET"]
    assert [query["resourceVersion"] for query in queries if "watch" in query] == ["7", "8"]


def test_a_bookmark_of_pods_is_no_change_and_the_next_watch_continues_from_it() -> None:
    changes: list[Change] = []
    empty = {"metadata": {"resourceVersion": "9"}, "spec": {"containers": None}, "status": {}}  # as the server sends it

    def answer(query: dict[str, str]) -> Answer:
        if "watch" not in query:
            return an_empty_list()
        return (200, {"type": "BOOKMARK", "object": empty}) if query["resourceVersion"] == "7" else (410, None)

    with api_server(answer) as (url, queries):
        server = Server("bench", url, Path("/none"))

        def pause(_: float) -> None:
            raise Enough

        with pytest.raises(Enough):
            follow(server, "Pod", "", changes.append, lambda _: None, pause=pause)
    assert [change.action for change in changes] == ["LIST"]
    assert [query["resourceVersion"] for query in queries if "watch" in query] == ["7", "9"]
