"""The watcher's client of the API server, against a server that answers as Kubernetes does when it is in trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import urllib3
from api_server import Answer, api_server

from bench.watcher.api import PAGE, Change, Server, follow
from bench.watcher.backoff import FIRST, LONGEST, RESET, Backoff
from bench.watcher.health import Health, serve
from bench.watcher.prune import ObjectKind

pytestmark = pytest.mark.once


class Enough(Exception):
    """The client paused as often as the test wants to see."""


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


def followed(kind: ObjectKind, event: str, item: Any) -> tuple[list[str], list[str]]:
    """Follow a kind of objects until the second watch fails. The first one sends an event of an object.

    Returns:
        The actions of the changes, and the versions from which the watches continued.
    """
    changes: list[Change] = []

    def answer(query: dict[str, str]) -> Answer:
        if "watch" not in query:
            return an_empty_list()
        return (200, {"type": event, "object": item}) if query["resourceVersion"] == "7" else (410, None)

    def pause(_: float) -> None:
        raise Enough

    with api_server(answer) as (url, queries), pytest.raises(Enough):
        follow(Server("bench", url, Path("/none")), kind, "", changes.append, lambda _: None, pause=pause)
    actions = [str(change.action) for change in changes]
    return actions, [query["resourceVersion"] for query in queries if "watch" in query]


def test_changes_reach_the_watcher_in_order() -> None:
    item = {"metadata": {"name": "e", "resourceVersion": "8"}, "type": "Warning", "involvedObject": {}}
    assert followed("Event", "ADDED", item) == (["LIST", "SET"], ["7", "8"])


def test_a_bookmark_of_pods_is_no_change_and_the_next_watch_continues_from_it() -> None:
    empty = {"metadata": {"resourceVersion": "9"}, "spec": {"containers": None}, "status": {}}  # as the server sends it
    assert followed("Pod", "BOOKMARK", empty) == (["LIST"], ["7", "9"])
