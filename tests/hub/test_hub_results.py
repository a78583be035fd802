"""Results at a hub: how they are stored, updated, rejected and listed."""

from __future__ import annotations

import http.client
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hubs import OTHER_TOKEN, TOKEN, RunningHub
from synthetic import busy_machine, explanation, ladder_results, measured, result
from test_hub_runs import run, send

from bench.hub.db.database import Database
from bench.hub.web import body

pytestmark = [pytest.mark.once, pytest.mark.essential]


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    """Return the problem document of a response, after checking it."""
    assert response.status == status, response.data
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["type"] == f"urn:devbench:problem:{kind}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    return document


def ids(page: dict[str, Any]) -> list[str]:
    return [result["id"] for result in page["results"]]


def test_a_result_is_returned_byte_for_byte(hub: RunningHub) -> None:
    body = measured("1", [0.1, 0.11], warnings=busy_machine()).model_dump_json(indent=3).encode() + b"\n"
    assert hub.put("/api/v1/results/1", body).json() == {"id": "1", "outcome": "created"}
    assert hub.request("GET", "/api/v1/results/1").data == body


def test_a_result_sent_twice_is_stored_once(hub: RunningHub) -> None:
    assert [hub.send(result("a")), hub.send(result("a"))] == ["created", "same"]
    assert ids(hub.get("/api/v1/results")) == ["a"]


def test_a_complete_result_is_final(hub: RunningHub) -> None:
    hub.send(measured("a", [0.1]))
    changed = measured("a", [0.2])
    rejection = problem(hub.put("/api/v1/results/a", changed.model_dump_json().encode()), 409, "final")
    assert "final" in rejection["hint"]
    assert hub.send(measured("a", [0.3], attempt=2)) == "superseded"
    assert hub.send(measured("a", [0.3, 0.3], attempt=3, status="partial")) == "superseded"
    (listed,) = hub.get("/api/v1/results")["results"]
    assert (listed["attempt"], listed["status"]) == (1, "complete")


def test_a_later_attempt_replaces_a_partial_result_and_an_earlier_one_does_not(hub: RunningHub) -> None:
    second = measured("a", [0.1], status="partial", attempt=2)
    assert hub.send(second) == "created"
    assert hub.send(measured("a", [0.1, 0.1, 0.1], status="partial", attempt=1)) == "superseded"
    assert hub.send(measured("a", [], status="failed", attempt=1)) == "superseded"
    assert hub.send(measured("a", [0.3], status="partial", attempt=3)) == "updated"
    assert hub.get("/api/v1/results/a")["attempt"] == 3
    assert hub.send(measured("a", [0.1], attempt=1)) == "updated"  # complete, even if it arrives late


def test_the_state_with_more_processes_wins_within_an_attempt_in_any_order(hub: RunningHub) -> None:
    assert hub.send(measured("a", [0.1, 0.2], status="partial")) == "created"
    assert hub.send(measured("a", [0.1], status="partial")) == "superseded"
    assert hub.send(measured("a", [0.1, 0.2, 0.3], status="partial")) == "updated"
    assert hub.send(measured("a", [0.1], status="failed")) == "updated"
    assert hub.send(measured("a", [0.1, 0.2, 0.3], status="partial")) == "superseded"
    assert hub.send(measured("a", [0.1])) == "updated"


@pytest.mark.parametrize("path", ["results", "runs", "explanations"])
def test_writing_requires_one_of_the_tokens(hub: RunningHub, path: str) -> None:
    body = result("a").model_dump_json().encode()
    for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}0", f"Bearer {TOKEN[:-1]}"):
        response = hub.put(f"/api/v1/{path}/a", body, authorization=wrong)
        problem(response, 401, "unauthorized")
        assert response.headers["www-authenticate"].startswith("Bearer ")
    if path == "results":
        for token in (TOKEN, OTHER_TOKEN):
            assert hub.put("/api/v1/results/a", body, authorization=f"Bearer {token}").status == 200


def test_a_token_can_be_removed_while_the_hub_runs(serve: Callable[..., RunningHub], tmp_path: Any) -> None:
    tokens = tmp_path / "rotated"
    tokens.write_text(f"{TOKEN}\n{OTHER_TOKEN}\n", encoding="utf-8")
    hub = serve(tokens_file=tokens)
    assert hub.send(result("a")) == "created"
    tokens.write_text(f"{OTHER_TOKEN}\n", encoding="utf-8")
    body = result("b").model_dump_json().encode()
    problem(hub.put("/api/v1/results/b", body), 401, "unauthorized")
    assert hub.put("/api/v1/results/b", body, authorization=f"Bearer {OTHER_TOKEN}").status == 200


def test_previous_tokens_stay_valid_while_the_file_of_tokens_is_invalid(
    serve: Callable[..., RunningHub], tmp_path: Any
) -> None:
    tokens = tmp_path / "rotated"
    tokens.write_text(f"{TOKEN}\n", encoding="utf-8")
    hub = serve(tokens_file=tokens)
    tokens.write_text(f"{TOKEN}\nshort\n", encoding="utf-8")
    assert hub.send(measured("1", [0.1])) == "created"


@pytest.mark.parametrize(
    "change",
    [
        {"created": "9999-12-31T23:59:59-12:00"},
        {"created": "1969-12-31T23:59:59Z"},
        {"environment": {"host": {"load": "HUGE"}}},
        {"summary": {"phases": {"nonsense": {"value": 1.0}}}},
    ],
)
def test_values_that_no_page_can_show_are_rejected(hub: RunningHub, change: dict[str, Any]) -> None:
    document = {**measured("1", [0.1]).model_dump(mode="json"), **change}
    body = json.dumps(document).replace('"HUGE"', "1e999").encode()
    response = hub.put("/api/v1/results/1", body)
    assert response.status == 422, response.data
    assert hub.get("/api/v1/results")["results"] == []
    assert hub.request("GET", "/results").status == 200


def test_reading_can_be_restricted_to_readers_and_tokens(serve: Callable[..., RunningHub], tmp_path: Any) -> None:
    readers = tmp_path / "readers"
    readers.write_text("grace:a good password\n", encoding="utf-8")
    hub = serve(readers_file=readers)
    hub.send(result("a"))
    grace = "Basic Z3JhY2U6YSBnb29kIHBhc3N3b3Jk"
    for path in ("/api/v1/results", "/api/v1/results/a", "/metrics", "/openapi.json"):
        for wrong in ("", "Basic", "Basic eA==", "Basic ???", "Basic Z3JhY2U6YSBiYWQgcGFzc3dvcmQ="):
            response = hub.request("GET", path, authorization=wrong)
            problem(response, 401, "unauthorized")
            assert response.headers["www-authenticate"].startswith("Basic ")
        for right in (grace, f"Bearer {TOKEN}"):
            assert hub.request("GET", path, authorization=right).status == 200
    assert [hub.request("GET", path).status for path in ("/healthz", "/readyz")] == [200, 200]


def test_a_body_over_16_mb_is_rejected_with_or_without_a_content_length(hub: RunningHub) -> None:
    large = b" " * (16 * 2**20 + 1)
    problem(hub.put("/api/v1/results/a", large), 413, "too-large")
    pieces = (large[n : n + 2**20] for n in range(0, len(large), 2**20))
    problem(_chunked(hub, pieces), 413, "too-large")
    almost = result("a").model_dump_json().encode()
    assert hub.put("/api/v1/results/a", almost + b" " * (16 * 2**20 - len(almost))).status == 200


def open_request(hub: RunningHub, length: int = 5000) -> http.client.HTTPConnection:
    """Return a connection whose body the hub waits for, as its response to `Expect` says."""
    connection = http.client.HTTPConnection(hub.url.removeprefix("http://"), timeout=60)
    connection.putrequest("PUT", "/api/v1/results/a")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}", "Content-Length": str(length)}
    headers["Expect"] = "100-continue"
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.sock.recv(1000).startswith(b"HTTP/1.1 100 ")
    return connection


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_the_hub_reads_one_large_body_at_a_time_and_small_ones_meanwhile(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "LARGE_BODY_BYTES", 4000)
    document = json.loads(result("b").model_dump_json()) | {"id": "b"}
    large = json.dumps(document).encode() + b" " * 5000
    assert hub.put("/api/v1/results/b", large).status == 200
    sender = open_request(hub)
    response = hub.put("/api/v1/results/b", large)
    problem(response, 503, "busy")
    assert response.headers["retry-after"] == "2"
    problem(_chunked(hub, iter([large[:3000], large[3000:]])), 503, "busy")
    assert send(hub, run("small")) == "created"
    sender.close()
    wait_until(lambda: hub.put("/api/v1/results/b", large).status == 200)


def test_bodies_together_have_a_maximum_size(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    small = result("b").model_dump_json().encode()
    large = small + b" " * 10_000
    monkeypatch.setattr(body, "HELD_BYTES", 10_000 + len(large))
    sender = open_request(hub, 15_000)
    sender.send(b" " * 10_001)
    wait_until(lambda: hub.put("/api/v1/results/b", large).status == 503)
    assert hub.put("/api/v1/results/b", small).status == 200
    sender.close()
    wait_until(lambda: hub.put("/api/v1/results/b", large).status != 503)


def test_a_body_that_arrives_too_slowly_is_refused(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "PATIENCE", 0.2)
    slow = open_request(hub)
    response = slow.getresponse()
    assert (response.status, json.loads(response.read())["type"]) == (503, "urn:devbench:problem:slow-body")
    slow.close()
    steady = open_request(hub, 40_000)  # 2 s at the lowest rate
    for _ in range(8):
        steady.send(b" " * 5000)
        time.sleep(0.1)
    assert steady.getresponse().status == 400  # it is no JSON
    steady.close()


def test_a_body_that_does_not_arrive_frees_its_slot(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "LARGE_BODY_BYTES", 4000)
    monkeypatch.setattr(body, "TIMEOUT", 0.2)
    slow = open_request(hub)
    response = slow.getresponse()
    assert (response.status, json.loads(response.read())["type"]) == (503, "urn:devbench:problem:slow-body")
    slow.close()


def _chunked(hub: RunningHub, pieces: Any) -> Any:
    import urllib3

    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    return urllib3.PoolManager(retries=False).request(
        "PUT", f"{hub.url}/api/v1/results/a", body=pieces, headers=headers, chunked=True
    )


def test_a_document_of_another_schema_version_is_distinguished_from_an_invalid_one(hub: RunningHub) -> None:
    document = json.loads(result("a").model_dump_json())
    current = document["schema_version"]
    newer = {**document, "schema_version": current + 1, "more": 1}
    assert "Upgrade the hub" in problem(hub.put("/api/v1/results/a", newer), 422, "newer-schema")["hint"]
    for older in ({**document, "schema_version": current - 1}, {**document, "schema_version": current - 1, "more": 1}):
        rejected = problem(hub.put("/api/v1/results/a", older), 422, "older-schema")
        assert f"too old: it has schema version {current - 1}" in rejected["detail"]
        assert "Measure again" in rejected["hint"]
    wrong = problem(hub.put("/api/v1/results/a", {**document, "more": 1}), 422, "invalid-document")
    assert "more" in wrong["detail"]
    invalid_explanation = {**json.loads(explanation(ladder_results()).model_dump_json()), "more": 1}
    problem(
        hub.put("/api/v1/explanations/why", {**invalid_explanation, "schema_version": current + 1}), 422, "newer-schema"
    )
    problem(
        hub.put("/api/v1/explanations/why", {**invalid_explanation, "schema_version": current - 1}), 422, "older-schema"
    )
    problem(hub.put("/api/v1/explanations/why", invalid_explanation), 422, "invalid-document")
    invalid_documents: list[Any] = [[], 1, {}]
    for invalid in (
        *invalid_documents,
        {**document, "schema_version": True},
        {**document, "created": "0001-01-01T00:00:00Z"},
    ):
        problem(hub.put("/api/v1/results/a", invalid), 422, "invalid-document")
    for malformed in (b"", b"{", b"\xff", b'{"a": NaN}'):
        problem(hub.put("/api/v1/results/a", malformed), 400, "not-json")
    problem(hub.put("/api/v1/results/b", document), 422, "invalid-document")
    problem(hub.put("/api/v1/results/a", document, content_type="text/plain"), 415, "not-json")
    assert hub.get("/api/v1/results")["results"] == []


@pytest.mark.parametrize("text", ["\x00", "\x1b[31m", "<script>alert(1)</script>", "é" * 5000, "\u202e", "'; --"])
def test_any_text_can_be_stored_and_found(hub: RunningHub, text: str) -> None:
    hub.send(result("a", workload=f"x{text}", group=text))
    (listed,) = hub.get("/api/v1/results")["results"]
    assert listed["workload"].startswith("x")
    assert len(listed["workload"]) <= 200
    assert hub.get("/api/v1/results/a")["spec"]["workload"] == f"x{text}"


def test_a_list_can_be_filtered_and_has_pages_that_start_with_the_newest(hub: RunningHub) -> None:
    for n in range(7):
        hub.send(measured(str(n), [0.1], backend="cpu" if n % 2 else "cuda"))
    assert ids(hub.get("/api/v1/results")) == ["6", "5", "4", "3", "2", "1", "0"]
    assert ids(hub.get("/api/v1/results?backend=cpu")) == ["5", "3", "1"]
    assert ids(hub.get("/api/v1/results?backend=cpu&status=failed")) == []
    pages, query = [], "limit=3"
    while query:
        page = hub.get(f"/api/v1/results?{query}")
        pages.append(ids(page))
        query = page["next"] and f"limit=3&cursor={page['next']}"
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    problem(hub.request("GET", "/api/v1/results?cursor=nonsense"), 400, "invalid-cursor")
    problem(hub.request("GET", "/api/v1/results?backends=cpu"), 422, "invalid-parameter")
    problem(hub.request("GET", "/api/v1/results?limit=0"), 422, "invalid-parameter")


def test_pages_do_not_shift_when_results_arrive(hub: RunningHub) -> None:
    for n in range(4):
        hub.send(measured(str(n), [0.1]))
    first = hub.get("/api/v1/results?limit=2")
    hub.send(measured("9", [0.1]))
    assert ids(hub.get(f"/api/v1/results?limit=2&cursor={first['next']}")) == ["1", "0"]


def test_a_list_shows_the_figures_of_a_result(hub: RunningHub) -> None:
    environment = {"host": {"deployment": {"pool": "t4"}}, "framework": {"tensorflow": "2.21.0"}}
    hub.send(measured("1", [0.1, 0.1, 0.1], environment=environment))
    (listed,) = hub.get("/api/v1/results?pool=t4")["results"]
    assert (listed["title"], listed["pool"], listed["tensorflow"], listed["processes"]) == ("cifar", "t4", "2.21.0", 3)
    assert listed["step_seconds"]["value"] == pytest.approx(0.1)


def test_two_results_can_be_compared(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.101, 0.099]))
    hub.send(measured("2", [0.05, 0.0505, 0.0495], backend="cuda"))
    comparison = hub.get("/api/v1/comparisons?baseline=1&other=2")
    assert (comparison["verdict"], comparison["axis"]) == ("faster", "backend")
    problem(hub.request("GET", "/api/v1/comparisons?baseline=1&other=9"), 404, "not-found")
    problem(hub.request("GET", "/api/v1/comparisons?baseline=1"), 422, "invalid-parameter")


def test_a_history_spans_versions_of_tensorflow_and_finds_where_the_step_time_changed(hub: RunningHub) -> None:
    steps = [0.1, 0.1005, 0.0995, 0.1002, 0.0998, 0.12, 0.1203, 0.1198, 0.1201, 0.1199]
    for n, step in enumerate(steps):
        version = {"framework": {"tensorflow": f"2.{n}"}, "host": {"deployment": {"pool": "a"}}}
        hub.send(measured(str(n), [step, step], environment=version))
    hub.send(measured("20", [1.0], environment={"host": {"deployment": {"pool": "b"}}}))
    hub.send(measured("21", [1.0], environment=version, purpose="level"))
    key = hub.get("/api/v1/results?pool=a&limit=1")["results"][0]["comparison_key"]
    history = hub.get(f"/api/v1/history/{key}")
    assert [result["id"] for result in history["results"]] == [str(n) for n in range(10)]
    assert history["change_points"] == ["5"]
    problem(hub.request("GET", "/api/v1/history/0123456789abcdef"), 404, "not-found")


def test_a_later_state_of_an_explanation_replaces_it(hub: RunningHub) -> None:
    first = explanation(ladder_results())
    body = first.model_dump_json().encode()
    assert [hub.put("/api/v1/explanations/why", body).json()["outcome"] for _ in range(2)] == ["created", "same"]
    later = first.model_copy(update={"label": "another"})
    assert hub.put("/api/v1/explanations/why", later.model_dump_json().encode()).json()["outcome"] == "updated"
    assert hub.get("/api/v1/explanations/why")["label"] == "another"
    assert [item["id"] for item in hub.get("/api/v1/explanations")["explanations"]] == ["why"]


def test_a_missing_document_is_answered_with_a_problem_document(hub: RunningHub) -> None:
    for path in ("/api/v1/results/none", "/api/v1/runs/none", "/api/v1/explanations/none", "/nowhere"):
        problem(hub.request("GET", path), 404, "not-found")
    problem(hub.request("DELETE", "/api/v1/runs/a"), 405, "method-not-allowed")
    problem(hub.request("GET", "/api/v1/results/..%2f"), 404, "not-found")


def test_documents_are_stored_compressed(hub: RunningHub, database: Database) -> None:
    from sqlalchemy import select

    from bench.hub.db.tables import DOCUMENTS

    result = measured("1", [0.1] * 50)
    hub.send(result)
    with database.read() as connection:
        stored = connection.execute(select(DOCUMENTS.c.body)).scalar_one()
    assert zlib.decompress(stored) == result.model_dump_json().encode()
    assert len(stored) < len(result.model_dump_json()) / 3
