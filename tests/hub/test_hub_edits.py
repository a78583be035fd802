"""What people change about results: tags, notes, silence, and deletion."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hubs import TOKEN, RunningHub
from synthetic import measured
from test_hub_pages import get_page, text
from test_hub_runs import run, send

from bench.hub.db import exchange
from bench.hub.db.database import Database
from bench.publish.hub import run_token

pytestmark = pytest.mark.once


def edit(hub: RunningHub, method: str, name: str, change: Any = None, token: str = TOKEN) -> Any:
    body = None if change is None else json.dumps(change).encode()
    headers = {"authorization": f"Bearer {token}", "content_type": "application/json"}
    return hub.request(method, f"/api/v1/results/{name}", body, **headers)


def test_a_deleted_result_leaves_lists_pages_and_metrics_at_once(hub: RunningHub) -> None:
    for name in ("1", "2"):
        hub.send(measured(name, [0.1, 0.1], workload=f"w{name}"))
    send(hub, run("r", state="finished", results=["1"]))
    before = [get_page(hub, "/"), hub.request("GET", "/metrics").data.decode()]
    assert all("w1" in shown for shown in before)
    assert edit(hub, "DELETE", "1").status == 204
    for path in ("/", "/results", "/runs/r", "/metrics"):
        assert "w1" not in hub.request("GET", path).data.decode(), path
    assert "w2" in get_page(hub, "/")
    assert hub.request("GET", "/api/v1/results/1").status == 404
    assert hub.request("GET", "/results/1").status == 404
    assert edit(hub, "DELETE", "1").status == 404


def test_a_deleted_result_comes_back_only_as_a_later_state(hub: RunningHub) -> None:
    partial = measured("1", [0.1], status="partial")
    hub.send(partial)
    edit(hub, "DELETE", "1")
    assert hub.send(partial) == "superseded"
    assert hub.request("GET", "/api/v1/results/1").status == 404
    complete = measured("1", [0.1, 0.1])
    assert hub.send(complete) == "created"
    edit(hub, "DELETE", "1")
    assert hub.send(complete) == "superseded"
    assert hub.send(partial) == "superseded"
    assert hub.get("/api/v1/results")["results"] == []


def test_an_import_does_not_bring_a_deleted_result_back(hub: RunningHub, tmp_path: Path) -> None:
    hub.send(measured("1", [0.1]))
    hub.send(measured("2", [0.1]))
    edit(hub, "PATCH", "1", {"tags": ["gone"]})
    edit(hub, "PATCH", "2", {"tags": ["b", "a"], "note": "kept", "silenced": True})
    exchange.export_to(hub.database, tmp_path / "before.jsonl")
    edit(hub, "DELETE", "1")
    exchange.import_from(hub.database, tmp_path / "before.jsonl")
    assert [row["id"] for row in hub.get("/api/v1/results")["results"]] == ["2"]
    exchange.export_to(hub.database, tmp_path / "after.jsonl")
    other = Database(str(tmp_path / "other.db"))
    other.upgrade()
    for name in ("after", "before"):
        exchange.import_from(other, tmp_path / f"{name}.jsonl")
    exchange.export_to(other, tmp_path / "again.jsonl")
    other.close()
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "after.jsonl").read_text()


def test_tags_and_a_note_are_shown_and_found(hub: RunningHub) -> None:
    for name in ("1", "2"):
        hub.send(measured(name, [0.1]))
    assert edit(hub, "PATCH", "1", {"tags": ["new-driver", "a_b"], "note": "after <b>\nthe update"}).status == 200
    changed = edit(hub, "PATCH", "1", {"tags": ["driver", "a_b"]}).json()
    assert (changed["tags"], changed["note"]) == (["a_b", "driver"], "after <b>\nthe update")
    assert changed["silenced"] is False
    for tag, found in (("driver", ["1"]), ("a_b", ["1"]), ("a%b", []), ("axb", []), ("new-driver", []), ("iver", [])):
        assert [row["id"] for row in hub.get(f"/api/v1/results?tag={tag}")["results"]] == found, tag
    page = get_page(hub, "/results/1")
    assert "Tags: a_b, driver. after &lt;b&gt; the update" in text(page)
    assert '<option value="driver">' in get_page(hub, "/results")
    assert "a_b driver" in text(get_page(hub, "/results"))


def test_tags_survive_a_later_state_of_the_result(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1], status="partial"))
    edit(hub, "PATCH", "1", {"tags": ["a"], "note": "n", "silenced": True})
    hub.send(measured("1", [0.1, 0.1]))
    (row,) = hub.get("/api/v1/results")["results"]
    assert (row["status"], row["tags"], row["note"], row["silenced"]) == ("complete", ["a"], "n", True)


def test_only_a_token_for_everything_may_change_a_result(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1]))
    own = run_token.make(TOKEN, "1")
    for method, change in (("PATCH", {"note": "x"}), ("DELETE", None)):
        assert edit(hub, method, "1", change, "wrong").status == 401
        assert edit(hub, method, "1", change, own).status == 403
    assert hub.get("/api/v1/results/1")["id"] == "1"


@pytest.mark.parametrize(
    "change",
    [{"tags": ["a b"]}, {"tags": ["A"]}, {"tags": ["a"] * 21}, {"note": "x" * 5001}, {"notes": ""}, [], {"note": 1}],
)
def test_an_invalid_change_is_refused_with_a_hint(hub: RunningHub, change: Any) -> None:
    hub.send(measured("1", [0.1]))
    response = edit(hub, "PATCH", "1", change)
    assert (response.status, response.json()["type"]) == (422, "urn:devbench:problem:invalid-document")
    assert edit(hub, "PATCH", "none", {"note": "x"}).status == 404


def test_a_silenced_result_has_a_gauge_until_a_newer_one_arrives(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1]))
    key = hub.get("/api/v1/results")["results"][0]["comparison_key"]
    line = f'devbench_result_silenced{{key="{key}"}} 1.0'
    assert line not in hub.request("GET", "/metrics").data.decode()
    edit(hub, "PATCH", "1", {"silenced": True})
    assert line in hub.request("GET", "/metrics").data.decode()
    assert "Alerts about this result are silenced." in text(get_page(hub, "/results/1"))
    hub.send(measured("2", [0.1]))
    assert line not in hub.request("GET", "/metrics").data.decode()


def test_the_page_of_a_result_can_be_edited_behind_a_proxy(serve: Callable[..., RunningHub]) -> None:
    hub = serve(root_path="/bench")
    hub.send(measured("1", [0.1]))
    assert 'data-address="/bench/api/v1/results/1"' in get_page(hub, "/results/1")
